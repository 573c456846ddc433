#include "experiment/sync_results.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "experiment/figure_text.h"
#include "experiment/markdown_table.h"
#include "proto/sync_mode.h"

namespace tug {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kMostNumber = 65535;

// The number of "(4)" or ":4"; none: neither.
std::optional<uint32_t> ParseNumber(absl::string_view text) {
  uint32_t number = 0;
  const bool colon = absl::ConsumePrefix(&text, ":");
  if (!colon && !(absl::ConsumePrefix(&text, "(") && absl::ConsumeSuffix(&text, ")"))) {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(text, &number) || number > kMostNumber) return std::nullopt;
  return number;
}

std::vector<std::string> Line(const SyncPart& part, const SyncRun& run) {
  const bool stale = SyncModeOf(run.mode.policy).update_per_push;
  std::vector<std::string> line = {
      NameOf(run.straggler),
      run.mode.name,
      NumberText(run.BatchesPerSecond(), 2),
      NumberText(part.OfBsp(run), 2),
      NumberText(part.OfItself(run), 2),
      NumberText(run.UpdatesPerSecond(part.virtual_workers), 2),
      absl::StrFormat("%.0f (%.0f)", run.WaitShare() * 100, run.WaitShareOfMost() * 100),
      stale ? absl::StrFormat("%.1f (%d)", MeanStaleness(run.figures), MostStaleness(run.figures))
            : kNoFigure};
  if (part.replay) {
    line.insert(line.begin() + 5, NumberText(part.Bound(run), 2));
    return line;
  }
  const RunFigures& figures = run.figures;
  line.push_back(absl::StrFormat("%.0f", part.SamplesAt(run, figures.steps.back().step)));
  line.push_back(absl::StrFormat("%.1f", figures.steps.back().seconds));
  line.push_back(NumberText(FinalLoss(run.figures), 4));
  return line;
}

Json AsJson(const SyncPart& part, const SyncRun& run) {
  Json json = {{"mode", run.mode.name},
               {"straggler", NameOf(run.straggler)},
               {"batches_per_second", run.BatchesPerSecond()},
               {"of_undisturbed_bsp", OrNull(part.OfBsp(run))},
               {"of_itself_undisturbed", OrNull(part.OfItself(run))},
               {"bound", OrNull(part.Bound(run))},
               {"of_stragglers_pace", OrNull(part.OfStragglersPace(run))},
               {"updates_per_second", run.UpdatesPerSecond(part.virtual_workers)},
               {"warm_up_steps", run.warm_up},
               {"segment_updates", run.figures.updates},
               {"staleness", run.figures.staleness},
               {"dropped_pushes", run.figures.dropped_pushes},
               {"final_loss", OrNull(FinalLoss(run.figures))},
               {"workers", Json::array()},
               {"steps", Json::array()},
               {"evaluations", Json::array()}};
  for (const WorkerTimes& times : run.figures.workers) {
    json["workers"].push_back({{"virtual_worker", times.virtual_worker},
                               {"steps", times.steps},
                               {"skipped", times.skipped},
                               {"seconds", times.seconds},
                               {"compute_seconds", times.compute_seconds},
                               {"wait_seconds", times.wait_seconds},
                               {"straggle_seconds", times.straggle_seconds}});
  }
  for (const StepPoint& point : run.figures.steps) {
    json["steps"].push_back({{"step", point.step},
                             {"seconds", point.seconds},
                             {"samples", part.SamplesAt(run, point.step)},
                             {"loss", part.replay ? Json(nullptr) : OrNull(point.loss)}});
  }
  for (const EvalPoint& point : run.figures.evals) {
    json["evaluations"].push_back({{"step", point.step},
                                   {"seconds", point.seconds},
                                   {"samples", part.SamplesAt(run, point.step)},
                                   {"loss", OrNull(point.loss)},
                                   {"final", point.final}});
  }
  return json;
}

// Of one run beside a persistent straggler.
std::optional<std::string> PersistentFinding(const SyncPart& part, const SyncRun& run) {
  const std::optional<double> bound = part.Bound(run), kept = part.OfItself(run);
  if (!bound.has_value()) return std::nullopt;
  std::string text = absl::StrCat(run.mode.name, " beside a worker ",
                                  absl::StrFormat("%g", part.slowdown), " times as slow: ");
  if (run.mode.policy == SyncConfig::ASP) {
    if (!kept.has_value()) return std::nullopt;
    absl::StrAppendFormat(&text, "%s of its undisturbed speed, %s of the bound %.4f",
                          PercentText(*kept), PercentText(*kept / *bound), *bound);
    return text;
  }
  if (run.mode.policy == SyncConfig::BACKUP) {
    const std::optional<double> of_bsp = part.OfBsp(run);
    if (!of_bsp.has_value()) return std::nullopt;
    absl::StrAppendFormat(&text, "%s of undisturbed bsp's steps per second", PercentText(*of_bsp));
    if (kept.has_value()) absl::StrAppendFormat(&text, ", %s of its own", PercentText(*kept));
    return text;
  }
  const std::optional<double> pace = part.OfStragglersPace(run);
  if (!pace.has_value()) return std::nullopt;
  absl::StrAppendFormat(&text, "%s of the straggler's pace", PercentText(*pace));
  if (kept.has_value())
    absl::StrAppendFormat(&text, ", %s of its undisturbed speed", PercentText(*kept));
  return text;
}

// Of the loss that a run ended with beside undisturbed bsp's.
std::optional<std::string> LossFinding(const SyncPart& part, const SyncRun& run) {
  const SyncRun* bsp = part.FindBsp(StragglerKind::kNone);
  if (bsp == nullptr || &run == bsp) return std::nullopt;
  const std::optional<double> loss = FinalLoss(run.figures), of_bsp = FinalLoss(bsp->figures);
  if (!loss.has_value() || !of_bsp.has_value()) return std::nullopt;
  const std::string text =
      absl::StrCat(run.mode.name, ", stragglers: ", NameOf(run.straggler), ": ");
  if (!std::isfinite(*loss) || !std::isfinite(*of_bsp)) {
    return text + "its final loss, or that of undisturbed bsp, is not finite";
  }
  return text +
         absl::StrFormat("final loss %.4f, %+.4f against undisturbed bsp", *loss, *loss - *of_bsp);
}

}  // namespace

absl::StatusOr<SyncCase> ParseSyncCase(const std::string& text) {
  const size_t name_end = text.find_first_of("(:");
  const std::string name = absl::AsciiStrToLower(text.substr(0, name_end));
  const std::optional<uint32_t> number =
      name_end == std::string::npos ? std::nullopt : ParseNumber(text.substr(name_end));
  const bool bare = name_end == std::string::npos;
  if (bare && name == "bsp") return SyncCase{.name = name};
  if (bare && name == "asp") return SyncCase{.name = name, .policy = SyncConfig::ASP};
  if (number.has_value()) {
    const std::string full = absl::StrCat(name, "(", *number, ")");
    if (name == "ssp") {
      return SyncCase{.name = full, .policy = SyncConfig::SSP, .staleness = *number};
    }
    if (name == "backup" && *number > 0) {
      return SyncCase{.name = full, .policy = SyncConfig::BACKUP, .backups = *number};
    }
    if (name == "local" && *number > 1) return SyncCase{.name = full, .local_steps = *number};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--modes ", text, ": bsp, asp, ssp:S, backup:K from 1, local:H from 2"));
}

const char* NameOf(StragglerKind straggler) {
  switch (straggler) {
    case StragglerKind::kNone:
      return "none";
    case StragglerKind::kPersistent:
      return "persistent";
    case StragglerKind::kPauses:
      return "pauses";
  }
  return "";
}

absl::StatusOr<StragglerKind> ParseStraggler(const std::string& text) {
  for (const StragglerKind s :
       {StragglerKind::kNone, StragglerKind::kPersistent, StragglerKind::kPauses}) {
    if (text == NameOf(s)) return s;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--stragglers ", text, ": none, persistent or pauses"));
}

double SyncRun::BatchesPerSecond() const { return StepRate(figures, warm_up) * mode.local_steps; }

double SyncRun::UpdatesPerSecond(uint32_t virtual_workers) const {
  const double steps = StepRate(figures, warm_up);
  return SyncModeOf(mode.policy).update_per_push ? steps * virtual_workers : steps;
}

double SyncRun::WaitShare() const {
  double seconds = 0, waits = 0;
  for (const WorkerTimes& times : figures.workers) {
    seconds += times.seconds;
    waits += times.wait_seconds;
  }
  return seconds > 0 ? waits / seconds : 0;
}

double SyncRun::WaitShareOfMost() const {
  double most = 0;
  for (const WorkerTimes& times : figures.workers) {
    if (times.seconds > 0) most = std::max(most, times.wait_seconds / times.seconds);
  }
  return most;
}

const SyncRun* SyncPart::Find(const SyncCase& mode, StragglerKind straggler) const {
  for (const SyncRun& run : runs) {
    if (run.mode == mode && run.straggler == straggler) return &run;
  }
  return nullptr;
}

const SyncRun* SyncPart::FindBsp(StragglerKind straggler) const {
  return Find(SyncCase{.name = "bsp"}, straggler);
}

std::optional<double> SyncPart::OfBsp(const SyncRun& run) const {
  const SyncRun* bsp = FindBsp(StragglerKind::kNone);
  if (bsp == nullptr || bsp->BatchesPerSecond() <= 0) return std::nullopt;
  return run.BatchesPerSecond() / bsp->BatchesPerSecond();
}

std::optional<double> SyncPart::OfItself(const SyncRun& run) const {
  const SyncRun* undisturbed = Find(run.mode, StragglerKind::kNone);
  if (undisturbed == nullptr || undisturbed->BatchesPerSecond() <= 0) return std::nullopt;
  return run.BatchesPerSecond() / undisturbed->BatchesPerSecond();
}

std::optional<double> SyncPart::Bound(const SyncRun& run) const {
  if (!replay || run.straggler != StragglerKind::kPersistent) return std::nullopt;
  switch (run.mode.policy) {
    case SyncConfig::ASP:
      return (virtual_workers - 1 + 1 / slowdown) / virtual_workers;
    case SyncConfig::BACKUP:
      return 1;
    default:
      return 1 / slowdown;
  }
}

std::optional<double> SyncPart::OfStragglersPace(const SyncRun& run) const {
  if (!replay || run.straggler != StragglerKind::kPersistent) return std::nullopt;
  for (const WorkerTimes& times : run.figures.workers) {
    if (times.virtual_worker != slow_virtual_worker || times.steps == times.skipped) continue;
    const double seconds_per_step = (times.compute_seconds + times.straggle_seconds) /
                                    static_cast<double>(times.steps - times.skipped);
    return StepRate(run.figures, run.warm_up) * seconds_per_step;
  }
  return std::nullopt;
}

double SyncPart::SamplesAt(const SyncRun& run, uint64_t step) const {
  const double used = run.mode.policy == SyncConfig::BACKUP
                          ? 1 - static_cast<double>(run.mode.backups) / virtual_workers
                          : 1;
  return static_cast<double>(step * run.mode.local_steps * batch_samples) * used;
}

std::vector<std::vector<std::string>> ResultsTable(const SyncPart& part) {
  std::vector<std::vector<std::string>> table = {{"straggler", "mode", "batches/s", "of bsp",
                                                  "of itself", "updates/s", "waits, % (most)",
                                                  "staleness (most)"}};
  if (part.replay) {
    table[0].insert(table[0].begin() + 5, "bound");
  } else {
    table[0].insert(table[0].end(), {"samples", "seconds", "final loss"});
  }
  for (const SyncRun& run : part.runs) table.push_back(Line(part, run));
  return table;
}

std::vector<std::string> Findings(const SyncPart& part) {
  std::vector<std::string> findings;
  if (!part.replay) {
    for (const SyncRun& run : part.runs) {
      if (const auto finding = LossFinding(part, run)) findings.push_back(*finding);
    }
    return findings;
  }
  for (const SyncRun& run : part.runs) {
    if (const auto finding = PersistentFinding(part, run)) findings.push_back(*finding);
  }
  for (const SyncRun& run : part.runs) {
    const std::optional<double> kept = part.OfItself(run);
    if (run.straggler != StragglerKind::kPauses || !kept.has_value()) continue;
    findings.push_back(absl::StrCat(run.mode.name, " with random pauses: ", PercentText(*kept),
                                    " of its undisturbed speed"));
  }
  return findings;
}

std::string ResultsMarkdown(const SyncResults& results) {
  std::string text;
  for (const SyncPart& part : results.parts) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", "## ", part.title, "\n\n", part.about, "\n\n",
                    MarkdownTable(ResultsTable(part)), "\n");
    for (const std::string& finding : Findings(part)) absl::StrAppend(&text, "- ", finding, "\n");
  }
  return text;
}

Json ResultsJson(const SyncResults& results) {
  Json json = {
      {"command", results.command}, {"settings", Json::object()}, {"parts", Json::array()}};
  for (const auto& [name, value] : results.settings) json["settings"][name] = value;
  for (const SyncPart& part : results.parts) {
    Json one = {{"title", part.title},
                {"replay", part.replay},
                {"virtual_workers", part.virtual_workers},
                {"batch_samples", part.batch_samples},
                {"slow_virtual_worker", part.slow_virtual_worker},
                {"slowdown", part.slowdown},
                {"findings", Findings(part)},
                {"runs", Json::array()}};
    for (const SyncRun& run : part.runs) one["runs"].push_back(AsJson(part, run));
    json["parts"].push_back(std::move(one));
  }
  return json;
}

}  // namespace tug
