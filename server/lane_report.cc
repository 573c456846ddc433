// SPDX-License-Identifier: Apache-2.0
#include "server/lane_report.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tug {
namespace {

// Adds up to the last entry that is not 0.
void AddStaleness(std::span<const uint64_t> staleness, NodeCounters& counters) {
  size_t entries = staleness.size();
  while (entries > 0 && staleness[entries - 1] == 0) --entries;
  while (counters.staleness_size() < static_cast<int>(entries)) counters.add_staleness(0);
  for (size_t t = 0; t < entries; ++t) {
    const auto i = static_cast<int>(t);
    counters.set_staleness(i, counters.staleness(i) + staleness[t]);
  }
}

// The minimum over lanes, once all report clocks of the same view.
void AddClocks(std::span<const LaneReport> reports, HeartbeatRequest& request) {
  std::vector<uint64_t> least;
  uint32_t view = 0;
  for (const LaneReport& report : reports) {
    const LaneProgress& lane = report.progress;
    if (lane.clocks.empty() || (view != 0 && lane.clocks_of_view != view)) return;
    view = lane.clocks_of_view;
    if (least.empty()) least = lane.clocks;
    for (size_t vw = 0; vw < least.size(); ++vw) least[vw] = std::min(least[vw], lane.clocks[vw]);
  }
  request.mutable_clocks()->Assign(least.begin(), least.end());
  request.set_clocks_of_view(view);
}

// Activity of the lane that has waited longest, else of one that updates.
NodeActivity ActivityOf(std::span<const LaneReport> reports, absl::Time now) {
  using Doing = ShardActivity::Doing;
  NodeActivity told;
  told.set_doing(NodeActivity::RESTING);
  for (const LaneReport& report : reports) {
    const ShardActivity& activity = report.activity;
    for (const std::string& name : report.algorithms) told.add_algorithms(name);
    const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - report.active_since));
    const bool waits = activity.doing == Doing::kWaiting;
    if (activity.doing == Doing::kResting) continue;
    if (told.doing() == NodeActivity::WAITING_FOR_SUM && (!waits || told.seconds() >= seconds)) {
      continue;
    }
    told.set_doing(waits ? NodeActivity::WAITING_FOR_SUM : NodeActivity::UPDATING);
    told.set_block(activity.block);
    told.set_clock(activity.clock);
    told.set_seconds(seconds);
    told.mutable_late()->Assign(activity.late.begin(), activity.late.end());
  }
  return told;
}

}  // namespace

void AddReports(std::span<const LaneReport> lanes, absl::Time now, HeartbeatRequest& request) {
  bool ready = true;
  uint32_t copied_placement = std::numeric_limits<uint32_t>::max();
  uint32_t schedule = std::numeric_limits<uint32_t>::max();
  NodeCounters& counters = *request.mutable_counters();
  for (const LaneReport& report : lanes) {
    const LaneFigures& figures = report.figures;
    ready = ready && report.ready;
    schedule = std::min(schedule, report.progress.schedule);
    copied_placement = std::min(copied_placement, report.progress.copied_placement);
    for (const CheckpointPart& part : report.parts) *request.add_parts() = part;
    for (const ShardNotice& notice : report.notices) {
      Notice* added = request.add_notices();
      added->set_key(notice.key);
      added->set_text(notice.text);
    }
    counters.set_messages_dropped(counters.messages_dropped() + figures.messages_dropped);
    counters.set_messages_refused(counters.messages_refused() + figures.messages_refused);
    counters.set_most_outstanding_bytes(
        std::max(counters.most_outstanding_bytes(), figures.most_outstanding_bytes));
    counters.set_socket_bytes(counters.socket_bytes() + figures.socket_bytes);
    counters.set_shared_memory_bytes(counters.shared_memory_bytes() + figures.sent_bytes -
                                     figures.socket_bytes);
    counters.set_updates(counters.updates() + figures.updates);
    counters.set_dropped_pushes(counters.dropped_pushes() + figures.dropped_pushes);
    counters.set_decode_seconds(counters.decode_seconds() + figures.sum_seconds);
    counters.set_weight_bytes(counters.weight_bytes() + figures.weight_bytes);
    counters.set_optimizer_bytes(counters.optimizer_bytes() + figures.optimizer_bytes);
    counters.set_sum_bytes(counters.sum_bytes() + figures.sum_bytes);
    counters.set_cached_bytes(counters.cached_bytes() + figures.cached_bytes);
    AddStaleness(figures.staleness, counters);
  }
  AddClocks(lanes, request);
  request.set_ready(ready);
  request.set_schedule(schedule);
  request.set_copied_placement(copied_placement);
  *request.mutable_activity() = ActivityOf(lanes, now);
}

absl::Status FirstFailure(std::span<const LaneReport> lanes) {
  for (const LaneReport& report : lanes) {
    if (!report.failure.ok()) return report.failure;
  }
  return absl::OkStatus();
}

uint64_t SharedBytes(std::span<const LaneReport> lanes) {
  uint64_t bytes = 0;
  for (const LaneReport& report : lanes) bytes += report.figures.shared_bytes;
  return bytes;
}

void LaneReport::AddNotice(ShardNotice notice) {
  const bool known = std::ranges::count(notices, notice.key, &ShardNotice::key) > 0;
  if (!known && notices.size() < kMaxNotices) notices.push_back(std::move(notice));
}

}  // namespace tug
