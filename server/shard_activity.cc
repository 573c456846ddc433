#include "server/shard_activity.h"

#include <limits>
#include <optional>
#include <tuple>

#include "server/shard.h"

namespace tug {

ShardActivity Shard::activity() const {
  return update_per_push_ ? ActivityOfPulls() : ActivityOfSums();
}

// Pushes come from the last block to the first. A block of which nobody has pushed anything is no
// news: everybody computes.
ShardActivity Shard::ActivityOfSums() const {
  std::optional<uint32_t> begun, summed;
  const auto is_older = [this](uint32_t id, const std::optional<uint32_t>& than) {
    if (!than.has_value()) return true;
    const SegmentState& state = *states_[id];
    const SegmentState& other = *states_[*than];
    return std::tuple(state.version, table_.segment(*than).block) <
           std::tuple(other.version, table_.segment(id).block);
  };
  for (const uint32_t id : owned_) {
    const SegmentState& state = *states_[id];
    if (state.sum.complete()) {
      if (is_older(id, summed)) summed = id;
    } else if (state.sum.added() > 0 && is_older(id, begun)) {
      begun = id;
    }
  }
  if (!begun.has_value() && !summed.has_value()) return {};
  const uint32_t id = begun.has_value() ? *begun : *summed;
  ShardActivity activity{.doing = ShardActivity::Doing::kUpdating,
                         .block = table_.segment(id).block,
                         .clock = states_[id]->version};
  if (!begun.has_value()) return activity;
  activity.doing = ShardActivity::Doing::kWaiting;
  for (uint32_t vw = 0; vw < live_.size() && activity.late.size() < ShardActivity::kMostLate;
       ++vw) {
    if (live_.has(vw) && !states_[id]->sum.Covers(vw, 1)) activity.late.push_back(vw);
  }
  return activity;
}

ShardActivity Shard::ActivityOfPulls() const {
  std::optional<uint32_t> at;
  uint64_t clock = std::numeric_limits<uint64_t>::max();
  waiting_pulls_.Look([&](const WaitingPull& pull, uint32_t segment) {
    if (states_[segment] == nullptr || pull.header.version >= clock) return;
    at = segment;
    clock = pull.header.version;
  });
  if (!at.has_value()) return {};
  const VectorClock& next = *states_[*at]->next;
  ShardActivity activity{.doing = ShardActivity::Doing::kWaiting,
                         .block = table_.segment(*at).block,
                         .clock = next.least()};
  for (uint32_t vw = 0; vw < live_.size() && activity.late.size() < ShardActivity::kMostLate;
       ++vw) {
    if (live_.has(vw) && next.next(vw) == next.least()) activity.late.push_back(vw);
  }
  return activity;
}

}  // namespace tug
