// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/run_figures.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr double kAtOnce = 2e-3;  // seconds; nodes report every 20 ms

double LossOf(const Json& line) {
  const auto loss = line.find("loss");
  if (loss == line.end() || !loss->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return loss->get<double>();
}

StepPoint StepOf(const Json& line, uint64_t step, double at_seconds) {
  return {.step = step,
          .seconds = at_seconds,
          .loss = LossOf(line),
          .step_seconds = line.value("seconds", 0.0),
          .mean_seconds = line.value("mean_seconds", 0.0),
          .wait_seconds = line.value("mean_wait_seconds", 0.0),
          .overlap = line.value("overlap", 0.0),
          .pushed_bytes = line.value("pushed_bytes", uint64_t{0}),
          .pulled_bytes = line.value("pulled_bytes", uint64_t{0}),
          .tokens = line.value("tokens", uint64_t{0})};
}

WorkerTimes WorkerOf(const Json& line) {
  return {.virtual_worker = line.value("virtual_worker", 0u),
          .steps = line.value("steps", uint64_t{0}),
          .skipped = line.value("skipped", uint64_t{0}),
          .seconds = line.value("seconds", 0.0),
          .compute_seconds = line.value("compute_seconds", 0.0),
          .wait_seconds = line.value("wait_seconds", 0.0),
          .straggle_seconds = line.value("straggle_seconds", 0.0)};
}

NodeFigures NodeOf(const Json& line) {
  const auto bytes = [&](const char* name) { return line.value(name, uint64_t{0}); };
  return {.name = line.value("node", ""),
          .server = line.value("role", "") == "server",
          .held = {.weights = bytes("weight_bytes"),
                   .gradients = bytes("gradient_bytes"),
                   .optimizer = bytes("optimizer_bytes"),
                   .sums = bytes("sum_bytes"),
                   .cached = bytes("cached_bytes"),
                   .predicted = bytes("predicted_held_bytes")}};
}

// A settled schedule holds until tuning starts again, which a notice reports first.
void TakeTuning(const Json& line, const std::string& kind, uint64_t step, RunFigures& figures) {
  const bool again = kind == "notice" && absl::EndsWith(line.value("text", ""), "tuning again");
  if (kind == "trial" || again) figures.settled.reset();
  if (kind != "settled") return;
  figures.settled = {step, line.value("partition_bytes", uint64_t{0}),
                     line.value("credit_bytes", uint64_t{0})};
}

}  // namespace

absl::StatusOr<RunFigures> ReadRunFigures(const std::string& metrics_path) {
  std::ifstream file(metrics_path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", metrics_path));
  RunFigures figures;
  std::map<uint64_t, StepPoint> steps;
  std::map<std::pair<uint64_t, bool>, EvalPoint> evals;
  std::map<uint32_t, WorkerTimes> workers;
  std::map<std::string, NodeFigures> nodes;
  std::optional<double> began;
  bool ended = false;
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object()) continue;
    const std::string kind = line.value("kind", "");
    const uint64_t step = line.value("step", uint64_t{0});
    const double at = line.value("at_seconds", 0.0);
    TakeTuning(line, kind, step, figures);
    if (kind == "step") {
      if (!began.has_value()) began = at - line.value("seconds", 0.0);
      steps[step] = StepOf(line, step, at);
    } else if (kind == "eval") {
      const bool final = line.value("final", false);
      evals[{step, final}] = {step, at, LossOf(line), final};
    } else if (kind == "worker") {
      workers[line.value("virtual_worker", 0u)] = WorkerOf(line);
    } else if (kind == "node") {
      nodes[line.value("node", "")] = NodeOf(line);
    } else if (kind == "end") {
      ended = true;
      figures.updates = line.value("updates", uint64_t{0});
      figures.dropped_pushes = line.value("dropped_pushes", uint64_t{0});
      figures.staleness = line.value("staleness", std::vector<uint64_t>{});
      figures.worker_socket_bytes = line.value("worker_socket_bytes", uint64_t{0});
      figures.server_socket_bytes = line.value("server_socket_bytes", uint64_t{0});
      figures.encode_seconds = line.value("encode_seconds", 0.0);
      figures.decode_seconds = line.value("decode_seconds", 0.0);
    }
  }
  if (!ended || steps.empty()) {
    return absl::AbortedError(
        absl::StrCat(metrics_path, ": the job has not ended, or ran no step"));
  }
  for (auto& [step, point] : steps) {
    point.seconds -= *began;
    figures.steps.push_back(point);
  }
  for (auto& [key, point] : evals) {
    point.seconds -= *began;
    figures.evals.push_back(point);
  }
  for (const auto& [virtual_worker, times] : workers) figures.workers.push_back(times);
  for (const auto& [name, node] : nodes) figures.nodes.push_back(node);
  return figures;
}

std::vector<StepPoint> StepsAfter(const RunFigures& figures, uint64_t warm_up) {
  std::vector<StepPoint> steps;
  for (const StepPoint& point : figures.steps) {
    if (point.step > warm_up) steps.push_back(point);
  }
  return steps.empty() ? figures.steps : steps;
}

std::optional<double> FinalLoss(const RunFigures& figures) {
  if (figures.evals.empty()) return std::nullopt;
  return figures.evals.back().loss;
}

double MeanStaleness(const RunFigures& figures) {
  double sum = 0, count = 0;
  for (size_t staleness = 0; staleness < figures.staleness.size(); ++staleness) {
    sum += static_cast<double>(staleness * figures.staleness[staleness]);
    count += static_cast<double>(figures.staleness[staleness]);
  }
  return count > 0 ? sum / count : 0;
}

uint64_t MostStaleness(const RunFigures& figures) {
  for (size_t staleness = figures.staleness.size(); staleness > 0; --staleness) {
    if (figures.staleness[staleness - 1] > 0) return staleness - 1;
  }
  return 0;
}

double StepRate(const RunFigures& figures, uint64_t after) {
  // Steps reported at once become one point, at the last of them: until then, a worker had not
  // reported that it skipped steps.
  std::vector<StepPoint> heard;
  for (const StepPoint& point : figures.steps) {
    if (!heard.empty() && point.seconds - heard.back().seconds < kAtOnce) heard.pop_back();
    heard.push_back(point);
  }
  if (heard.empty()) return 0;
  if (heard.size() == 1) {
    const double seconds = heard.front().seconds;
    return seconds > 0 ? static_cast<double>(figures.steps.size()) / seconds : 0;
  }
  auto from = std::find_if(heard.begin(), heard.end(),
                           [&](const StepPoint& point) { return point.step >= after; });
  if (heard.end() - from < 2) from = heard.begin();
  auto to = heard.end() - 1;
  if (to - from >= 2) --to;
  const double seconds = to->seconds - from->seconds;
  return seconds > 0 ? static_cast<double>(to->step - from->step) / seconds : 0;
}

}  // namespace tug
