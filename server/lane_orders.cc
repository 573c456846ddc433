// SPDX-License-Identifier: Apache-2.0
#include "server/lane_orders.h"

#include <algorithm>
#include <utility>

#include "config/placement_mode.h"

namespace tug {
namespace {

// Virtual workers that a server's lanes wait for in a view. `exchange: ALL_REDUCE`: those of the
// worker paired with the server; fault.on_worker_loss SHRINK: those assigned to a worker; otherwise
// all.
LiveSet LiveSetOf(const View& view, const JobConfig& config, uint32_t server_node_id) {
  const uint32_t virtual_workers = config.cluster().virtual_workers();
  const bool own_alone = AllReduces(config);
  if (!own_alone && config.fault().on_worker_loss() != FaultConfig::SHRINK) {
    return LiveSet(virtual_workers);
  }
  std::vector<bool> live(virtual_workers, false);
  for (const WorkerAssignment& worker : view.workers()) {
    if (own_alone && worker.server_node_id() != server_node_id) continue;
    for (const uint32_t virtual_worker : worker.virtual_workers()) {
      if (virtual_worker < virtual_workers) live[virtual_worker] = true;
    }
  }
  return LiveSet(std::move(live));
}

}  // namespace

void LaneOrders::OnView(const View& view) {
  const bool begins = Begins(view);
  if (begins) wanted_ = {};
  wanted_.view = view.number();
  wanted_.live = LiveSetOf(view, config_, server_node_id_);
  // Normally the next view has ordered it; not if this server missed that reply.
  if (!begins && view.placement() > placement_) wanted_.placement = view;
  timeline_ = view.timeline();
  placement_ = view.placement();
}

void LaneOrders::OnNextView(const View& next) {
  const bool places = Places(next);
  const bool joins = Joins(next);
  if (timeline_ == 0 && !joins) return;
  if (joins) wanted_ = {};
  if (next.number() <= std::max(wanted_.fence, wanted_.view)) return;
  wanted_.fence = next.number();
  wanted_.live = LiveSet(config_.cluster().virtual_workers());
  if (!places) return;  // only a number, of the same timeline and placement
  if (!joins) wanted_.placement = next;
  placement_ = next.placement();
  timeline_ = next.timeline();
}

bool LaneOrders::OnReply(const HeartbeatReply& reply) {
  const uint32_t fence = wanted_.fence;
  OnNextView(reply.next_view());
  bool changed = wanted_.fence != fence;
  if (wanted_.final_version != reply.final_version() ||
      !std::ranges::equal(wanted_.final_clocks, reply.final_clocks())) {
    wanted_.final_version = reply.final_version();
    wanted_.final_clocks.assign(reply.final_clocks().begin(), reply.final_clocks().end());
    changed = true;
  }
  if (reply.schedule().number() > wanted_.schedule) {
    wanted_.schedule = reply.schedule().number();
    wanted_.pull_credit_bytes = reply.schedule().pull_credit_bytes();
    changed = true;
  }
  return changed;
}

}  // namespace tug
