// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/worker_timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "coordinator/trace/trace_limit.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr double kTouching = 20e-6;  // seconds; shorter gaps separate waits for blocks of one step

struct TracedWorker {
  std::optional<uint32_t> virtual_worker;
  std::map<uint64_t, TimeRange> steps;
  std::vector<TimeRange> waits;
};

// Traced workers by node.
std::map<uint32_t, TracedWorker> WorkersOf(const Json& trace) {
  std::map<uint32_t, TracedWorker> workers;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::string category = event.at("cat").get<std::string>();
    const bool forward = category == "forward";
    if (category != "step" && category != "wait" && !forward) continue;
    TracedWorker& worker = workers[event.at("pid").get<uint32_t>()];
    if (forward) {
      const uint32_t virtual_worker = event.at("args").at("virtual_worker").get<uint32_t>();
      worker.virtual_worker =
          std::min(worker.virtual_worker.value_or(virtual_worker), virtual_worker);
      continue;
    }
    const double begin = event.at("ts").get<double>() * 1e-6;
    const TimeRange range{begin, begin + event.at("dur").get<double>() * 1e-6};
    if (category == "wait") {
      worker.waits.push_back(range);
    } else {
      worker.steps[event.at("args").at("step").get<uint64_t>()] = range;
    }
  }
  return workers;
}

// Parts of `waits`, which are in order, that lie in `whole`.
std::vector<TimeRange> Within(const TimeRange& whole, const std::vector<TimeRange>& waits) {
  std::vector<TimeRange> within;
  for (const TimeRange& wait : waits) {
    const TimeRange part{std::max(wait.begin_seconds, whole.begin_seconds),
                         std::min(wait.end_seconds, whole.end_seconds)};
    if (part.end_seconds <= part.begin_seconds) continue;
    if (!within.empty() && part.begin_seconds - within.back().end_seconds < kTouching) {
      within.back().end_seconds = std::max(within.back().end_seconds, part.end_seconds);
    } else {
      within.push_back(part);
    }
  }
  return within;
}

void Shift(std::vector<TimeRange>& ranges, double seconds) {
  for (TimeRange& range : ranges) {
    range.begin_seconds -= seconds;
    range.end_seconds -= seconds;
  }
}

}  // namespace

absl::StatusOr<std::vector<WorkerTimeline>> ReadWorkerTimelines(const std::string& trace_path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(trace_path, kTraceLimitBytes));
  std::map<uint32_t, TracedWorker> traced;
  try {
    traced = WorkersOf(Json::parse(text));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(trace_path, " is not a trace of tug: ", error.what()));
  }
  double origin = std::numeric_limits<double>::infinity();
  for (const auto& [node, worker] : traced) {
    if (worker.steps.empty()) continue;
    origin = std::min(origin, worker.steps.begin()->second.begin_seconds);
  }
  std::vector<WorkerTimeline> timelines;
  for (auto& [node, worker] : traced) {
    if (worker.steps.empty() || !worker.virtual_worker.has_value()) continue;
    std::sort(worker.waits.begin(), worker.waits.end(), [](const TimeRange& a, const TimeRange& b) {
      return a.begin_seconds < b.begin_seconds;
    });
    Shift(worker.waits, origin);
    WorkerTimeline& timeline = timelines.emplace_back();
    timeline.virtual_worker = *worker.virtual_worker;
    for (const auto& [step, range] : worker.steps) {
      const TimeRange whole{range.begin_seconds - origin, range.end_seconds - origin};
      timeline.steps.push_back({step, whole, Within(whole, worker.waits)});
    }
  }
  if (timelines.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(trace_path, " has no worker steps"));
  }
  std::sort(timelines.begin(), timelines.end(),
            [](const auto& a, const auto& b) { return a.virtual_worker < b.virtual_worker; });
  return timelines;
}

double EndOfSteps(const std::vector<WorkerTimeline>& workers, size_t count) {
  double end = 0, last = 0;
  for (const WorkerTimeline& worker : workers) {
    if (worker.steps.empty()) continue;
    last = std::max(last, worker.steps.back().whole.end_seconds);
    if (count == 0 || worker.steps.size() < count) continue;
    end = std::max(end, worker.steps[count - 1].whole.end_seconds);
  }
  return end > 0 ? end : last;
}

}  // namespace tug
