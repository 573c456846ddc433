// SPDX-License-Identifier: Apache-2.0
#include "coordinator/checkpoints/checkpoint_collector.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "checkpoint/manifest_file.h"
#include "coordinator/membership/shown_text.h"

namespace tug {
namespace {

constexpr size_t kMaxFileBytes = 255;  // NAME_MAX

}  // namespace

CheckpointCollector::CheckpointCollector(uint32_t lanes, uint32_t clocks,
                                         std::optional<uint64_t> newest_whole)
    : has_part_(lanes, true), lanes_(lanes), clocks_(clocks), newest_whole_(newest_whole) {
  TUG_CHECK_GE(lanes, 1u);
}

void CheckpointCollector::SetPlacement(uint32_t placement, std::span<const uint32_t> owners) {
  TUG_CHECK(!owners.empty());
  placement_ = placement;
  newest_of_lane_.clear();
  has_part_.assign(1 + size_t{*std::ranges::max_element(owners)}, false);
  for (const uint32_t lane : owners) has_part_[lane] = true;
  lanes_ = static_cast<uint32_t>(std::ranges::count(has_part_, true));
  for (auto& [version, open] : open_) {
    open.arrived = 0;
    open.parts.assign(has_part_.size(), std::nullopt);
  }
  std::erase_if(open_, [](const auto& entry) { return entry.second.residuals.empty(); });
}

std::vector<CollectedCheckpoint> CheckpointCollector::SetCarried(std::vector<bool> carried) {
  carried_ = std::move(carried);
  return TakeWhole();
}

void CheckpointCollector::OnMoved(uint32_t virtual_worker, uint64_t clock) {
  for (auto& [version, open] : open_) {
    if (!CountsAfterMove(version, clock)) open.residuals.erase(virtual_worker);
  }
  const auto newest = newest_residual_.find(virtual_worker);
  if (newest == newest_residual_.end() || CountsAfterMove(newest->second, clock)) return;
  newest->second = clock;
}

void CheckpointCollector::GiveUp(uint64_t version) {
  open_.erase(version);
  given_up_.insert(version);
}

bool CheckpointCollector::AwaitsResiduals() const {
  return std::ranges::any_of(open_, [this](const auto& entry) {
    return HasLanes(entry.second) && !IsWhole(entry.first, entry.second);
  });
}

bool CheckpointCollector::Wants(const CheckpointPart& part) const {
  if (IsOld(part.version()) || IsGivenUp(part.version())) return false;
  if (!part.error().empty() || !HasOwnFile(part)) return false;
  const auto open = open_.find(part.version());
  if (part.has_virtual_worker()) {
    if (part.virtual_worker() >= carried_.size()) return false;
    if (open == open_.end()) return HasRoomFor(part.version());
    // A part with a file replaces one without: two workers may report a virtual worker that has
    // moved.
    const auto there = open->second.residuals.find(part.virtual_worker());
    return there == open->second.residuals.end() ||
           (there->second.file().empty() && !part.file().empty());
  }
  if (part.placement() != placement_ || part.lane() >= has_part_.size()) return false;
  if (!has_part_[part.lane()]) return false;
  if (clocks_ > 0 && static_cast<uint32_t>(part.clocks_size()) != clocks_) return false;
  if (open == open_.end()) return HasRoomFor(part.version());
  return !open->second.parts[part.lane()].has_value();
}

bool CheckpointCollector::HasOwnFile(const CheckpointPart& part) const {
  if (part.file().empty()) return part.has_virtual_worker();
  if (!IsPlainFileName(part.file()) || Shown(part.file(), kMaxFileBytes) != part.file()) {
    return false;
  }
  const auto open = open_.find(part.version());
  if (open == open_.end()) return true;
  for (const std::optional<CheckpointPart>& other : open->second.parts) {
    if (other.has_value() && other->file() == part.file()) return false;
  }
  for (const auto& [virtual_worker, other] : open->second.residuals) {
    if (other.file() == part.file()) return false;
  }
  return true;
}

// Coordinator::WhatIsNew selects all parts of a heartbeat before the first is added. A part refused
// then must not be accepted later, so a version that some lane has passed is refused here too.
bool CheckpointCollector::HasRoomFor(uint64_t version) const {
  for (const auto& [lane, newest] : newest_of_lane_) {
    if (newest > version) return false;
  }
  return open_.size() < kMaxOpen || open_.begin()->first < version;
}

void CheckpointCollector::DropPassed(uint32_t lane, uint64_t version) {
  uint64_t& newest = newest_of_lane_[lane];
  newest = std::max(newest, version);
  std::erase_if(open_, [&](const auto& entry) {
    return entry.first < newest && !entry.second.parts[lane].has_value();
  });
}

std::vector<CollectedCheckpoint> CheckpointCollector::Add(const CheckpointPart& part) {
  if (!Wants(part)) return {};
  std::vector<CollectedCheckpoint> whole;
  if (part.has_virtual_worker()) {
    uint64_t& newest = newest_residual_[part.virtual_worker()];
    newest = std::max(newest, part.version());
    whole = TakeWhole();
  }
  if (!part.has_virtual_worker()) DropPassed(part.lane(), part.version());
  if (open_.size() == kMaxOpen && !open_.contains(part.version())) open_.erase(open_.begin());
  Open& open = open_[part.version()];
  open.parts.resize(has_part_.size());
  if (part.has_virtual_worker()) {
    open.residuals[part.virtual_worker()] = part;
  } else {
    open.parts[part.lane()] = part;
    ++open.arrived;
  }
  for (CollectedCheckpoint& each : TakeWhole()) whole.push_back(std::move(each));
  if (const auto oldest = OldestOverdue(); oldest.has_value()) whole.push_back(Take(*oldest));
  return whole;
}

std::optional<uint64_t> CheckpointCollector::OldestOverdue() const {
  const auto has_lanes = [this](const auto& entry) { return HasLanes(entry.second); };
  const auto awaited = std::ranges::count_if(open_, has_lanes);
  if (static_cast<size_t>(awaited) <= kMaxAwaited) return std::nullopt;
  return std::ranges::find_if(open_, has_lanes)->first;
}

std::vector<CollectedCheckpoint> CheckpointCollector::TakeWhole() {
  std::vector<CollectedCheckpoint> whole;
  while (true) {
    const auto open = std::ranges::find_if(
        open_, [this](const auto& entry) { return IsWhole(entry.first, entry.second); });
    if (open == open_.end()) return whole;
    whole.push_back(Take(open->first));
  }
}

bool CheckpointCollector::IsWhole(uint64_t version, const Open& open) const {
  if (!HasLanes(open)) return false;
  if (version == 0) return true;  // no pushes yet, so no residuals
  for (uint32_t v = 0; v < carried_.size(); ++v) {
    if (!carried_[v] || open.residuals.contains(v)) continue;
    const auto newest = newest_residual_.find(v);
    if (newest == newest_residual_.end() || newest->second <= version) return false;
  }
  return true;
}

CollectedCheckpoint CheckpointCollector::Take(uint64_t version) {
  CollectedCheckpoint whole;
  whole.version = version;
  whole.clocks.assign(clocks_, std::numeric_limits<uint64_t>::max());
  const auto add = [&whole](CheckpointPart part) {
    whole.pause_seconds = std::max(whole.pause_seconds, part.pause_seconds());
    whole.write_seconds = std::max(whole.write_seconds, part.write_seconds());
    whole.parts.push_back(std::move(part));
  };
  Open& open = open_.at(version);
  for (std::optional<CheckpointPart>& each : open.parts) {
    if (!each.has_value()) continue;
    for (uint32_t v = 0; v < clocks_; ++v) {
      whole.clocks[v] = std::min(whole.clocks[v], each->clocks(static_cast<int>(v)));
    }
    add(*std::move(each));
  }
  for (auto& [virtual_worker, part] : open.residuals) {
    if (!part.file().empty()) add(std::move(part));
  }
  newest_whole_ = version;
  // Lanes and workers report in order of version, so older checkpoints can no longer complete.
  open_.erase(open_.begin(), open_.upper_bound(version));
  given_up_.erase(given_up_.begin(), given_up_.upper_bound(version));
  return whole;
}

}  // namespace tug
