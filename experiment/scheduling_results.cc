#include "experiment/scheduling_results.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_size.h"
#include "base/median.h"
#include "experiment/figure_text.h"
#include "experiment/markdown_table.h"

namespace tug {
namespace {

using Json = nlohmann::ordered_json;

std::string Millis(double seconds) { return absl::StrFormat("%.0f", seconds * 1e3); }

Json AsJson(const std::optional<WorkedOutStep>& step) {
  if (!step.has_value()) return nullptr;
  return {{"step_seconds", step->seconds}, {"exposed_seconds", step->exposed_seconds}};
}

Json AsJson(const std::optional<TunedSchedule>& tuned) {
  if (!tuned.has_value()) return nullptr;
  return {{"partition_bytes", tuned->partition_bytes}, {"credit_bytes", tuned->credit_bytes}};
}

Json AsJson(const SchedulingCase& c, const PolicyResult& p) {
  return {{"policy", p.policy},
          {"step_seconds", p.seconds()},
          {"exposed_seconds", Median(p.steps.exposed_seconds)},
          {"overlap", Median(p.steps.overlap)},
          {"speed_up_over_fifo", OrNull(c.SpeedUp(p))},
          {"over_bound", OrNull(c.OverBound(p))},
          {"tuned", AsJson(p.tuned)},
          {"predicted", AsJson(p.predicted)},
          {"predicted_deviation", OrNull(SchedulingCase::Deviation(p))},
          {"steps",
           {{"seconds", p.steps.seconds},
            {"exposed_seconds", p.steps.exposed_seconds},
            {"overlap", p.steps.overlap}}}};
}

std::vector<std::string> Line(const SchedulingCase& c, const PolicyResult& p) {
  const auto [least, most] = std::minmax_element(p.steps.seconds.begin(), p.steps.seconds.end());
  const std::optional<double> deviation = SchedulingCase::Deviation(p);
  return {c.profile,
          absl::StrFormat("%g", c.ratio),
          p.Label(),
          absl::StrCat(Millis(p.seconds()),
                       p.steps.seconds.empty()
                           ? ""
                           : absl::StrCat(" (", Millis(*least), " to ", Millis(*most), ")")),
          Millis(Median(p.steps.exposed_seconds)),
          absl::StrFormat("%.2f", Median(p.steps.overlap)),
          NumberText(c.SpeedUp(p), 2),
          c.bound.has_value() ? Millis(c.bound->seconds) : kNoFigure,
          NumberText(c.OverBound(p), 2),
          p.predicted.has_value() ? Millis(p.predicted->seconds) : kNoFigure,
          deviation.has_value() ? absl::StrFormat("%+.1f%%", *deviation * 100) : kNoFigure};
}

}  // namespace

absl::StatusOr<StepSeries> ReadStepSeries(const std::string& metrics_path, uint64_t first_step,
                                          uint64_t last_step) {
  std::ifstream file(metrics_path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", metrics_path));
  struct Step {
    double seconds, exposed_seconds, overlap;
  };
  std::map<uint64_t, Step> steps;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.value("kind", "") != "step") continue;
    const uint64_t step = json.value("step", uint64_t{0});
    if (step < first_step || step > last_step) continue;
    steps[step] = {json.value("mean_seconds", 0.0), json.value("mean_wait_seconds", 0.0),
                   json.value("overlap", 0.0)};
  }
  if (steps.size() != last_step - first_step + 1) {
    return absl::AbortedError(absl::StrCat("the job did ", steps.size(), " of ",
                                           last_step - first_step + 1,
                                           " steps that were to be measured"));
  }
  StepSeries series;
  for (const auto& [step, figures] : steps) {
    series.seconds.push_back(figures.seconds);
    series.exposed_seconds.push_back(figures.exposed_seconds);
    series.overlap.push_back(figures.overlap);
  }
  return series;
}

absl::StatusOr<std::optional<TunedSchedule>> ReadTunedSchedule(const std::string& metrics_path,
                                                               uint64_t before_step) {
  std::ifstream file(metrics_path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", metrics_path));
  std::optional<TunedSchedule> tuned;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const std::string kind = json.value("kind", "");
    // It began again; the notice is the first that is heard of it.
    const bool again = kind == "notice" && absl::EndsWith(json.value("text", ""), "tuning again");
    if (kind == "trial" || again) tuned.reset();
    if (kind != "settled" || json.value("step", uint64_t{0}) >= before_step) continue;
    tuned = {json.value("partition_bytes", uint64_t{0}), json.value("credit_bytes", uint64_t{0})};
  }
  return tuned;
}

std::string PolicyResult::Label() const {
  if (policy != kAutoPolicy) return policy;
  if (!tuned.has_value()) return absl::StrCat(policy, " (not settled)");
  return absl::StrFormat("%s (%s, credit %s)", policy, ByteSizeText(tuned->partition_bytes),
                         ByteSizeText(tuned->credit_bytes));
}

std::optional<double> SchedulingCase::SpeedUp(const PolicyResult& policy) const {
  for (const PolicyResult& other : policies) {
    if (other.policy == kFifoPolicy) return other.seconds() / policy.seconds();
  }
  return std::nullopt;
}

std::optional<double> SchedulingCase::OverBound(const PolicyResult& policy) const {
  if (!bound.has_value()) return std::nullopt;
  return policy.seconds() / bound->seconds;
}

std::optional<double> SchedulingCase::Deviation(const PolicyResult& policy) {
  if (!policy.predicted.has_value()) return std::nullopt;
  return policy.predicted->seconds / policy.seconds() - 1;
}

std::vector<std::vector<std::string>> ResultsTable(const SchedulingResults& results) {
  std::vector<std::vector<std::string>> table = {{"profile", "ratio", "policy", "step, ms (range)",
                                                  "exposed, ms", "overlap", "speed-up", "bound, ms",
                                                  "x bound", "simulated, ms", "deviation"}};
  for (const SchedulingCase& c : results.cases) {
    for (const PolicyResult& p : c.policies) table.push_back(Line(c, p));
  }
  return table;
}

std::string ResultsMarkdown(const SchedulingResults& results) {
  return MarkdownTable(ResultsTable(results));
}

Json ResultsJson(const SchedulingResults& results) {
  Json json = {
      {"command", results.command}, {"settings", Json::object()}, {"cases", Json::array()}};
  for (const auto& [name, value] : results.settings) json["settings"][name] = value;
  for (const SchedulingCase& c : results.cases) {
    Json one = {{"profile", c.profile},
                {"ratio", c.ratio},
                {"size_scale", c.scale.size_scale},
                {"time_scale", c.scale.time_scale},
                {"model_bytes", c.scale.model_bytes},
                {"transfer_seconds", c.scale.transfer_seconds},
                {"compute_seconds", c.scale.compute_seconds},
                {"segment_elements", c.grain.segment_elements},
                {"partition_bytes", c.grain.partition_bytes},
                {"credit_bytes", c.grain.credit_bytes},
                {"pull_credit_bytes", c.grain.pull_credit_bytes},
                {"bound", AsJson(c.bound)},
                {"policies", Json::array()}};
    for (const PolicyResult& p : c.policies) one["policies"].push_back(AsJson(c, p));
    json["cases"].push_back(std::move(one));
  }
  return json;
}

std::string CaseTitle(const SchedulingCase& c) {
  return absl::StrFormat("%s, ratio %g", c.profile, c.ratio);
}

}  // namespace tug
