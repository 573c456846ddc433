#include "coordinator/checkpoint_collector.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace tug {

CheckpointCollector::CheckpointCollector(uint32_t lanes, uint32_t clocks,
                                         std::optional<uint64_t> newest_whole)
    : has_part_(lanes, true), lanes_(lanes), clocks_(clocks), newest_whole_(newest_whole) {
  TUG_CHECK_GE(lanes, 1u);
}

void CheckpointCollector::SetPlacement(uint32_t placement, std::span<const uint32_t> owners) {
  TUG_CHECK(!owners.empty());
  placement_ = placement;
  has_part_.assign(1 + size_t{*std::max_element(owners.begin(), owners.end())}, false);
  for (const uint32_t lane : owners) has_part_[lane] = true;
  lanes_ = static_cast<uint32_t>(std::count(has_part_.begin(), has_part_.end(), true));
  open_.clear();
}

bool CheckpointCollector::Wants(const CheckpointPart& part) const {
  const bool old = newest_whole_.has_value() && part.version() <= *newest_whole_;
  if (part.placement() != placement_ || part.lane() >= has_part_.size()) return false;
  if (!has_part_[part.lane()]) return false;
  if (old || !part.error().empty()) return false;
  if (clocks_ > 0 && static_cast<uint32_t>(part.clocks_size()) != clocks_) return false;
  const auto open = open_.find(part.version());
  if (open == open_.end()) return open_.size() < kMaxOpen;
  return !open->second.parts[part.lane()].has_value();
}

std::optional<CollectedCheckpoint> CheckpointCollector::Add(const CheckpointPart& part) {
  if (!Wants(part)) return std::nullopt;
  Open& open = open_[part.version()];
  open.parts.resize(has_part_.size());
  open.parts[part.lane()] = part;
  if (++open.arrived < lanes_) return std::nullopt;

  CollectedCheckpoint whole;
  whole.version = part.version();
  whole.clocks.assign(clocks_, std::numeric_limits<uint64_t>::max());
  for (std::optional<CheckpointPart>& each : open.parts) {
    if (!each.has_value()) continue;
    whole.pause_seconds = std::max(whole.pause_seconds, each->pause_seconds());
    whole.write_seconds = std::max(whole.write_seconds, each->write_seconds());
    for (uint32_t v = 0; v < clocks_; ++v) {
      whole.clocks[v] = std::min(whole.clocks[v], each->clocks(static_cast<int>(v)));
    }
    whole.parts.push_back(*std::move(each));
  }
  newest_whole_ = whole.version;
  // A lane reports in order of version, so what is older can no longer become whole.
  open_.erase(open_.begin(), open_.upper_bound(whole.version));
  return whole;
}

}  // namespace tug
