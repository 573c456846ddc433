// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/device_timeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "coordinator/trace/trace_limit.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;
using Kind = DeviceSpan::Kind;

std::optional<Kind> KindOf(const std::string& category) {
  if (category == "forward") return Kind::kForward;
  if (category == "backward") return Kind::kBackward;
  return std::nullopt;
}

// Node and track.
using ThreadKey = std::pair<uint32_t, uint32_t>;

ThreadKey ThreadKeyOf(const Json& event) {
  return {event.at("pid").get<uint32_t>(), event.at("tid").get<uint32_t>()};
}

struct Tracks {
  std::map<ThreadKey, std::vector<DeviceSpan>> spans;  // of tracks with passes
  std::set<ThreadKey> threads;                         // with steps
  std::map<uint64_t, double> updated_at;
};

Tracks TracksOf(const Json& trace) {
  Tracks tracks;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::string category = event.at("cat").get<std::string>();
    if (category == "step") tracks.threads.insert(ThreadKeyOf(event));
    const std::optional<Kind> kind = KindOf(category);
    if (!kind.has_value() && category != "optimizer") continue;
    const uint64_t step = event.at("args").at("step").get<uint64_t>();
    const double begin = event.at("ts").get<double>() * 1e-6;
    const double end = begin + event.at("dur").get<double>() * 1e-6;
    if (kind.has_value()) {
      tracks.spans[ThreadKeyOf(event)].push_back({*kind, step, begin, end});
    } else {
      double& last = tracks.updated_at.try_emplace(step, end).first->second;
      last = std::max(last, end);
    }
  }
  return tracks;
}

// Sorts spans by their begin, and assigns overlaps to the first span: a thread that queues records
// a pass twice.
void PutInOrder(std::vector<DeviceSpan>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const DeviceSpan& a, const DeviceSpan& b) {
    return a.begin_seconds < b.begin_seconds;
  });
  double end = -std::numeric_limits<double>::infinity();
  for (DeviceSpan& span : spans) {
    span.begin_seconds = std::max(span.begin_seconds, end);
    span.end_seconds = std::max(span.end_seconds, span.begin_seconds);
    end = span.end_seconds;
  }
}

}  // namespace

absl::StatusOr<DeviceTimeline> ReadDeviceTimeline(const std::string& trace_path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(trace_path, kTraceLimitBytes));
  Tracks tracks;
  try {
    tracks = TracksOf(Json::parse(text));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(trace_path, " is not a trace of tug: ", error.what()));
  }
  // The track of a device has no steps; that of the thread that queues its passes has them.
  const auto device =
      std::find_if(tracks.spans.begin(), tracks.spans.end(),
                   [&](const auto& track) { return !tracks.threads.contains(track.first); });
  const bool on_gpu = device != tracks.spans.end();
  const auto from = on_gpu ? device : tracks.spans.begin();
  if (from == tracks.spans.end()) {
    return absl::InvalidArgumentError(absl::StrCat(trace_path, " has no worker passes"));
  }
  DeviceTimeline timeline{.on_gpu = on_gpu,
                          .spans = std::move(from->second),
                          .updated_at = std::move(tracks.updated_at)};
  PutInOrder(timeline.spans);
  const double origin = timeline.spans.front().begin_seconds;
  for (DeviceSpan& span : timeline.spans) {
    span.begin_seconds -= origin;
    span.end_seconds -= origin;
  }
  for (auto& [step, at] : timeline.updated_at) at -= origin;
  return timeline;
}

std::vector<DeviceGap> DeviceGaps(const DeviceTimeline& timeline) {
  std::vector<DeviceGap> gaps;
  const auto add = [&](DeviceGap::Kind kind, uint64_t step, double begin, double end) {
    if (end > begin) gaps.push_back({kind, step, begin, end});
  };
  const uint64_t first = timeline.spans.empty() ? 0 : timeline.spans.front().step;
  for (size_t i = 1; i < timeline.spans.size(); ++i) {
    const DeviceSpan &before = timeline.spans[i - 1], &span = timeline.spans[i];
    if (span.step == first) continue;
    double begin = before.end_seconds;
    if (span.step != before.step) {
      const auto updated = timeline.updated_at.find(before.step);
      const double until = updated == timeline.updated_at.end() ? begin : updated->second;
      const double end = std::clamp(until, begin, span.begin_seconds);
      add(DeviceGap::Kind::kBpBubble, span.step, begin, end);
      begin = end;
    }
    const bool forward = span.kind == DeviceSpan::Kind::kForward;
    add(forward ? DeviceGap::Kind::kFpBubble : DeviceGap::Kind::kOther, span.step, begin,
        span.begin_seconds);
  }
  return gaps;
}

std::vector<DeviceStep> DeviceSteps(const DeviceTimeline& timeline) {
  std::vector<DeviceStep> steps;
  const DeviceSpan* before = nullptr;
  for (const DeviceSpan& span : timeline.spans) {
    if (before != nullptr && span.step != before->step) {
      steps.push_back({.step = span.step, .begin_seconds = before->end_seconds});
    }
    before = &span;
    if (steps.empty()) continue;
    steps.back().busy_seconds += span.end_seconds - span.begin_seconds;
    steps.back().end_seconds = span.end_seconds;
  }
  auto step = steps.begin();
  for (const DeviceGap& gap : DeviceGaps(timeline)) {
    while (step->step != gap.step) ++step;
    double& seconds = gap.kind == DeviceGap::Kind::kBpBubble   ? step->bp_bubble_seconds
                      : gap.kind == DeviceGap::Kind::kFpBubble ? step->fp_bubble_seconds
                                                               : step->other_seconds;
    seconds += gap.end_seconds - gap.begin_seconds;
  }
  return steps;
}

double Utilisation(const std::vector<DeviceStep>& steps) {
  double busy = 0, all = 0;
  for (const DeviceStep& step : steps) {
    busy += step.busy_seconds;
    all += step.seconds();
  }
  return all > 0 ? busy / all : std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> UtilisationOver(const DeviceTimeline& timeline, double begin_seconds,
                                    double end_seconds, size_t windows) {
  std::vector<double> parts(windows, 0.0);
  const double width = (end_seconds - begin_seconds) / static_cast<double>(windows);
  for (const DeviceSpan& span : timeline.spans) {
    const double from = (std::max(span.begin_seconds, begin_seconds) - begin_seconds) / width;
    const double to = (std::min(span.end_seconds, end_seconds) - begin_seconds) / width;
    for (auto w = static_cast<size_t>(std::max(from, 0.0)); w < windows; ++w) {
      const double begin = std::max(from, static_cast<double>(w));
      const double end = std::min(to, static_cast<double>(w + 1));
      if (end <= begin) break;
      parts[w] += end - begin;
    }
  }
  for (double& part : parts) part = std::min(part, 1.0);
  return parts;
}

}  // namespace tug
