// SPDX-License-Identifier: Apache-2.0
#include "server/pushes/push_admission.h"

#include <algorithm>
#include <utility>

namespace tug {
namespace {

// Within a block by id: once all segments before a segment are complete, a push that it misses
// begins with it.
std::vector<uint32_t> InBackwardOrder(const SegmentTable& table, std::span<const uint32_t> owned) {
  std::vector<uint32_t> ordered(owned.begin(), owned.end());
  std::stable_sort(ordered.begin(), ordered.end(), [&](uint32_t a, uint32_t b) {
    return table.segment(a).block > table.segment(b).block;
  });
  return ordered;
}

}  // namespace

PushAdmission::PushAdmission(Options options, const SegmentTable& table,
                             const SegmentStates& states, std::span<const uint32_t> owned)
    : options_(options),
      table_(table),
      states_(states),
      owned_(InBackwardOrder(table, owned)),
      nodes_(table.size()),
      deferred_(table.size()),
      spare_(options.spare),
      exempt_clock_(options.start_clock) {}

uint64_t PushAdmission::ParkedIn(uint32_t segment, uint32_t own_nodes) const {
  return own_nodes <= 1 ? 0 : (own_nodes - 1) * states_[segment]->sum.size_bytes();
}

PushAdmission::Need PushAdmission::NeedOf(const PushKey& key, bool own) const {
  Need need;
  const uint32_t first = table_.id(key.block, key.first_segment);
  for (uint32_t id = first; id < first + key.segment_count; ++id) {
    const SegmentState& state = *states_[id];
    if (state.version != key.clock || state.sum.complete() ||
        state.sum.Covers(key.virtual_worker, key.virtual_worker_count)) {
      continue;
    }
    need.missing = true;
    const uint32_t after = state.sum.OwnAfter(key.virtual_worker, key.virtual_worker_count, own);
    const Nodes& nodes = nodes_[id];
    need.node = need.node || after > nodes.own;
    need.parked_bytes += static_cast<int64_t>(ParkedIn(id, after + nodes.promised)) -
                         static_cast<int64_t>(ParkedIn(id, nodes.own + nodes.promised));
  }
  return need;
}

bool PushAdmission::Fits(const Need& need) const {
  if (need.parked_bytes <= 0) return true;
  return reserved_bytes_ + static_cast<uint64_t>(need.parked_bytes) <= options_.parking_bytes;
}

void PushAdmission::SetNodes(uint32_t segment, Nodes nodes) {
  const Nodes before = std::exchange(nodes_[segment], nodes);
  parked_bytes_ -= ParkedIn(segment, before.own);
  parked_bytes_ += ParkedIn(segment, nodes.own);
  reserved_bytes_ -= ParkedIn(segment, before.own + before.promised);
  reserved_bytes_ += ParkedIn(segment, nodes.own + nodes.promised);
}

void PushAdmission::Promise(Deferred& deferred, bool promised) {
  if (std::exchange(deferred.promised, promised) == promised) return;
  const uint32_t first = table_.id(deferred.key.block, deferred.key.first_segment);
  for (uint32_t id = first; id < first + deferred.key.segment_count; ++id) {
    Nodes nodes = nodes_[id];
    promised ? ++nodes.promised : --nodes.promised;
    SetNodes(id, nodes);
  }
}

std::optional<uint32_t> PushAdmission::ExemptSegment() {
  while (true) {
    for (; exempt_index_ < owned_.size(); ++exempt_index_) {
      const SegmentState& state = *states_[owned_[exempt_index_]];
      if (state.version <= exempt_clock_ && !state.sum.complete()) return owned_[exempt_index_];
    }
    const bool all_closed = std::all_of(owned_.begin(), owned_.end(), [&](uint32_t id) {
      return states_[id]->version > exempt_clock_;
    });
    if (!all_closed || owned_.empty()) return std::nullopt;
    ++exempt_clock_;
    exempt_index_ = 0;
  }
}

bool PushAdmission::IsExempt(const PushKey& key) {
  const std::optional<uint32_t> exempt = ExemptSegment();
  if (!exempt.has_value()) return false;
  const uint32_t first = table_.id(key.block, key.first_segment);
  if (*exempt < first || *exempt - first >= key.segment_count) return false;
  const SegmentState& state = *states_[*exempt];
  return state.version == key.clock &&
         !state.sum.Covers(key.virtual_worker, key.virtual_worker_count) &&
         state.sum.MissingBefore(key.virtual_worker) <= spare_;
}

bool PushAdmission::Admits(const PushKey& key, bool own) {
  const Need need = NeedOf(key, own);
  if (need.parked_bytes <= 0) return true;
  if (asked_count_ > 0) {  // if it was requested, its node is reserved
    const std::vector<Deferred>& list = deferred_[table_.id(key.block, key.first_segment)];
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Deferred& deferred) { return deferred.key == key; });
    if (found != list.end() && found->promised) return true;
  }
  return Fits(need) || IsExempt(key);
}

void PushAdmission::Defer(const PushKey& key, bool own) {
  Forget(key);
  if (deferred_count_ >= options_.max_deferred) return;
  deferred_[table_.id(key.block, key.first_segment)].push_back({.key = key, .own = own});
  ++deferred_count_;
}

bool PushAdmission::Announce(const PushKey& key, absl::Time now, std::vector<PushKey>& wanted) {
  Defer(key, /*own=*/true);
  AskFrom(table_.id(key.block, key.first_segment), now, wanted);
  return std::find(wanted.begin(), wanted.end(), key) != wanted.end();
}

void PushAdmission::Drop(std::vector<Deferred>& list, size_t index) {
  Promise(list[index], false);
  if (list[index].asked()) --asked_count_;
  --deferred_count_;
  list[index] = list.back();
  list.pop_back();
}

void PushAdmission::Forget(const PushKey& key) {
  if (deferred_count_ == 0) return;
  std::vector<Deferred>& list = deferred_[table_.id(key.block, key.first_segment)];
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].key == key) return Drop(list, i);
  }
}

void PushAdmission::ForgetAll() {
  for (std::vector<Deferred>& list : deferred_) {
    while (!list.empty()) Drop(list, list.size() - 1);
  }
}

void PushAdmission::Changed(uint32_t segment) {
  SetNodes(segment, {states_[segment]->sum.own_nodes(), nodes_[segment].promised});
  if (deferred_count_ > 0) changed_.push_back(segment);
}

bool PushAdmission::AskFrom(uint32_t segment, absl::Time now, std::vector<PushKey>& wanted) {
  std::vector<Deferred>& list = deferred_[segment];
  bool all_asked = true;
  for (size_t i = 0; i < list.size();) {
    Deferred& deferred = list[i];
    const Need need = NeedOf(deferred.key, deferred.own);
    if (!need.missing) {  // arrived in another push, or too late
      if (options_.ask_for_closed) wanted.push_back(deferred.key);
      Drop(list, i);
      continue;
    }
    ++i;
    if (deferred.asked()) continue;
    if (!Fits(need) && !IsExempt(deferred.key)) {
      all_asked = false;
      continue;
    }
    deferred.asked_at = now;
    Promise(deferred, need.node);
    ++asked_count_;
    wanted.push_back(deferred.key);
  }
  return all_asked;
}

void PushAdmission::TakeWanted(absl::Time now, std::vector<PushKey>& wanted) {
  for (const uint32_t segment : changed_) {
    if (!deferred_[segment].empty()) AskFrom(segment, now, wanted);
  }
  changed_.clear();
  if (deferred_count_ == asked_count_) return;
  if (const std::optional<uint32_t> exempt = ExemptSegment()) AskFrom(*exempt, now, wanted);
  for (size_t looked = 0; looked < owned_.size() && deferred_count_ > asked_count_; ++looked) {
    if (reserved_bytes_ >= options_.parking_bytes) return;
    if (!AskFrom(owned_[sweep_index_], now, wanted)) return;
    sweep_index_ = (sweep_index_ + 1) % owned_.size();
  }
}

void PushAdmission::OnTick(absl::Time now, std::vector<PushKey>& wanted) {
  if (deferred_count_ == 0) return;
  for (const uint32_t segment : owned_) {
    for (Deferred& deferred : deferred_[segment]) {
      if (!deferred.asked() || now - deferred.asked_at < options_.repeat_after) continue;
      deferred.asked_at = now;
      wanted.push_back(deferred.key);
    }
    AskFrom(segment, now, wanted);
  }
}

}  // namespace tug
