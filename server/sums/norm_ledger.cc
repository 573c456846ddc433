// SPDX-License-Identifier: Apache-2.0
#include "server/sums/norm_ledger.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/sum.h"

namespace tug {

NormLedger::NormLedger(const SegmentTable& table, std::span<const uint32_t> lane_of_segment,
                       uint32_t lane, Scope scope, uint64_t start_clock)
    : table_(table),
      lane_of_segment_(lane_of_segment.begin(), lane_of_segment.end()),
      lane_(lane),
      scope_(scope) {
  const uint32_t scopes = scope == Scope::kAll ? 1 : table.num_blocks();
  for (uint32_t s = 0; s < scopes; ++s) {
    ScopeState state;
    state.first_segment = scope == Scope::kAll ? 0 : table.first_of_block(s);
    state.end_segment = scope == Scope::kAll ? table.size() : table.first_of_block(s + 1);
    state.clock = start_clock;
    state.missing = state.end_segment - state.first_segment;
    state.entries.resize(state.missing);
    state.present.resize(state.missing, false);
    state.own = static_cast<uint32_t>(SegmentsOf(state, lane).size());
    state.own_missing = state.own;
    states_.push_back(std::move(state));
  }
}

bool NormLedger::RecoverState(std::span<const OwnSegment> own, uint64_t start_clock) {
  for (ScopeState& state : states_) {
    std::vector<OwnSegment> of_scope;
    for (const OwnSegment& segment : own) {
      if (segment.id < state.first_segment || segment.id >= state.end_segment) continue;
      of_scope.push_back(segment);
    }
    TUG_CHECK_EQ(of_scope.size(), state.own);
    if (of_scope.empty()) continue;
    const auto [lowest, highest] = std::minmax_element(
        of_scope.begin(), of_scope.end(),
        [](const OwnSegment& a, const OwnSegment& b) { return a.version < b.version; });
    if (highest->version > lowest->version + 1) return false;
    state.clock = lowest->version;
    state.has_previous = state.clock > start_clock && highest->version == state.clock;
    for (const OwnSegment& segment : of_scope) {
      if (state.has_previous) state.previous_own.push_back(segment.norm);
      if (segment.version == state.clock) continue;
      Put(state, segment.id, segment.norm);
      --state.own_missing;
    }
  }
  return true;
}

bool NormLedger::IsScope(uint32_t scope) const {
  return scope_ == Scope::kAll ? scope == kAllBlocks : scope < table_.num_blocks();
}

const NormLedger::ScopeState& NormLedger::At(uint32_t scope) const {
  TUG_CHECK(IsScope(scope));
  return states_[scope_ == Scope::kAll ? 0 : scope];
}

NormLedger::ScopeState& NormLedger::At(uint32_t scope) {
  return const_cast<ScopeState&>(std::as_const(*this).At(scope));
}

void NormLedger::Put(ScopeState& state, uint32_t segment, NormEntry entry) {
  const uint32_t i = segment - state.first_segment;
  state.entries[i] = entry;
  if (!state.present[i]) --state.missing;
  state.present[i] = true;
}

std::vector<uint32_t> NormLedger::SegmentsOf(const ScopeState& state, uint32_t lane) const {
  std::vector<uint32_t> segments;
  for (uint32_t id = state.first_segment; id < state.end_segment; ++id) {
    if (lane_of_segment_[id] == lane) segments.push_back(id);
  }
  return segments;
}

bool NormLedger::AddOwn(uint32_t segment, NormEntry entry) {
  ScopeState& state = At(ScopeOfBlock(table_.segment(segment).block));
  TUG_CHECK(lane_of_segment_[segment] == lane_ && !state.present[segment - state.first_segment]);
  Put(state, segment, entry);
  return --state.own_missing == 0;
}

bool NormLedger::AddRemote(uint32_t scope, uint32_t from_lane, uint64_t clock,
                           std::span<const std::byte> payload) {
  if (!IsScope(scope) || from_lane == lane_) return false;
  ScopeState& state = At(scope);
  if (clock < state.clock) return true;  // a repeat for a closed clock
  const std::vector<uint32_t> segments = SegmentsOf(state, from_lane);
  if (clock != state.clock || segments.empty() ||
      payload.size() != segments.size() * sizeof(NormEntry)) {
    return false;
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    NormEntry entry;
    std::memcpy(&entry, payload.data() + i * sizeof(NormEntry), sizeof(NormEntry));
    Put(state, segments[i], entry);
  }
  return true;
}

std::vector<NormEntry> NormLedger::OwnOf(const ScopeState& state) const {
  std::vector<NormEntry> own;
  for (uint32_t id : SegmentsOf(state, lane_)) {
    own.push_back(state.entries[id - state.first_segment]);
  }
  return own;
}

std::optional<std::vector<NormEntry>> NormLedger::OwnEntries(uint32_t scope, uint64_t clock) const {
  const ScopeState& state = At(scope);
  if (state.own == 0) return std::nullopt;
  if (clock == state.clock && state.own_missing == 0) return OwnOf(state);
  if (clock + 1 == state.clock && state.has_previous) return state.previous_own;
  return std::nullopt;
}

bool NormLedger::Waiting(uint32_t scope) const {
  const ScopeState& state = At(scope);
  return state.own > 0 && state.own_missing == 0 && state.missing > 0;
}

std::vector<uint32_t> NormLedger::MissingLanes(uint32_t scope) const {
  const ScopeState& state = At(scope);
  std::vector<uint32_t> lanes;
  for (uint32_t id = state.first_segment; id < state.end_segment; ++id) {
    if (!state.present[id - state.first_segment]) lanes.push_back(lane_of_segment_[id]);
  }
  std::sort(lanes.begin(), lanes.end());
  lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
  std::erase(lanes, lane_);
  return lanes;
}

std::vector<uint32_t> NormLedger::OtherLanes(uint32_t scope) const {
  const ScopeState& state = At(scope);
  std::vector<uint32_t> lanes(lane_of_segment_.begin() + state.first_segment,
                              lane_of_segment_.begin() + state.end_segment);
  std::sort(lanes.begin(), lanes.end());
  lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
  std::erase(lanes, lane_);
  return lanes;
}

std::vector<uint32_t> NormLedger::OwnSegments(uint32_t scope) const {
  return SegmentsOf(At(scope), lane_);
}

NormVerdict NormLedger::Fold(uint32_t scope) const {
  const ScopeState& state = At(scope);
  TUG_CHECK(state.missing == 0);
  NormVerdict verdict;
  std::vector<double> group;
  const auto group_of = [&](uint32_t id) {
    const Segment& segment = table_.segment(id);
    return std::pair(segment.block, segment.weight_decay);
  };
  for (uint32_t id = state.first_segment; id < state.end_segment; ++id) {
    const NormEntry& entry = state.entries[id - state.first_segment];
    if (verdict.finite && (!std::isfinite(entry.sum_of_squares) ||
                           entry.bad_virtual_worker != NormEntry::kAllFinite)) {
      verdict.finite = false;
      verdict.bad_block = table_.segment(id).block;
      verdict.bad_virtual_worker = entry.bad_virtual_worker;
    }
    group.push_back(entry.sum_of_squares);
    const bool group_ends = id + 1 == state.end_segment || group_of(id + 1) != group_of(id);
    if (!group_ends) continue;
    verdict.sum_of_squares += kernels::TreeFold(group);
    group.clear();
  }
  if (verdict.finite && !std::isfinite(verdict.sum_of_squares)) {
    verdict.finite = false;
    verdict.bad_block = table_.segment(state.first_segment).block;
  }
  return verdict;
}

void NormLedger::Advance(uint32_t scope) {
  ScopeState& state = At(scope);
  TUG_CHECK(state.missing == 0);
  state.previous_own = OwnOf(state);
  state.has_previous = true;
  ++state.clock;
  state.missing = state.end_segment - state.first_segment;
  state.own_missing = state.own;
  std::fill(state.present.begin(), state.present.end(), false);
}

}  // namespace tug
