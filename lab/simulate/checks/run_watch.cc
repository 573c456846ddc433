// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/checks/run_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"

namespace tug {
namespace {

constexpr size_t kMaxViolations = 5;

std::string PushText(const WireHeader& push) {
  return absl::StrCat("the push of virtual worker ", push.virtual_worker, " at clock ", push.clock,
                      " to block ", push.block, ", segment ", push.first_segment);
}

}  // namespace

uint64_t HashOf(std::span<const float> weights) { return PayloadChecksum(std::as_bytes(weights)); }

RunWatch::RunWatch(Options options, const JobConfig& config, const SegmentTable& table)
    : options_(options),
      bounded_(config.sync().policy() == SyncConfig::SSP),
      one_owner_(!AllReduces(config)),
      knows_pulls_(!SyncModeOf(config.sync().policy()).skips_steps),
      staleness_(config.sync().staleness()),
      virtual_workers_(config.cluster().virtual_workers()),
      table_(table) {
  if (CountedClocks(config) > 0) committed_.emplace();
}

std::vector<uint64_t>& RunWatch::Committed(const LaneState& lane, uint32_t segment) {
  std::vector<uint64_t>& next = (*committed_)[{lane.timeline, segment}];
  next.resize(virtual_workers_);
  return next;
}

void RunWatch::Violation(const std::string& text) {
  if (violations_.size() >= kMaxViolations) return;
  violations_.push_back(
      absl::StrCat("at ", absl::FormatDuration(time_->Now() - absl::UnixEpoch()), ": ", text));
}

void RunWatch::OnFilled(const LaneState& lane, uint32_t segment, std::span<const uint64_t> clocks) {
  if (committed_.has_value()) Committed(lane, segment).assign(clocks.begin(), clocks.end());
}

void RunWatch::OnTakeover(const LaneState& lane, uint32_t segment,
                          std::span<const uint64_t> clocks) {
  if (!committed_.has_value()) return;
  std::vector<uint64_t>& next = Committed(lane, segment);
  for (uint32_t v = 0; v < virtual_workers_; ++v) next[v] = std::max(next[v], clocks[v]);
}

RunWatch::PullKey RunWatch::KeyOf(const WireHeader& header, PeerId worker) {
  return {worker,
          header.block,
          header.first_segment,
          header.segment_count,
          static_cast<int>(header.want),
          header.clock,
          header.virtual_worker,
          header.virtual_worker_count};
}

bool RunWatch::IsHeld(const LaneState& lane, const WireHeader& as_sent, PeerId sender) const {
  if (as_sent.kind != MessageKind::kPull || as_sent.view != lane.view || !knows_pulls_) {
    return false;
  }
  const auto held = held_.find(lane.lane);
  return held != held_.end() && held->second.contains(KeyOf(as_sent, sender));
}

void RunWatch::BeforeDelivery(const LaneState& lane, const WireHeader& as_sent, PeerId sender) {
  delivery_ = {.under_way = true, .lane = lane, .header = as_sent, .sender = sender};
  const auto outstanding = outstanding_.find({lane.lane, sender});
  if (outstanding != outstanding_.end() && as_sent.kind == MessageKind::kWeightsReceived) {
    outstanding->second.erase(as_sent.ack_id);
  }
  const bool has_credit = outstanding == outstanding_.end() || outstanding->second.empty();
  delivery_.was_held = has_credit && IsHeld(lane, as_sent, sender);
}

void RunWatch::AfterDelivery() {
  delivery_.under_way = false;
  const WireHeader& pull = delivery_.header;
  const LaneState& lane = delivery_.lane;
  if (pull.kind != MessageKind::kPull) return;
  const bool own = pull.view == lane.view && pull.timeline == lane.timeline;
  std::set<PullKey>& held = held_[lane.lane];
  const PullKey key = KeyOf(pull, delivery_.sender);
  if (!own || delivery_.refused) return;
  if (delivery_.answered) {
    if (delivery_.was_held) {
      Violation(absl::StrCat("lane ", lane.lane, " answered a pull of block ", pull.block,
                             " for clock ", pull.clock, " by ", PeerName(delivery_.sender),
                             " only after it was resent: the first pull was lost"));
    }
    held.erase(key);
    return;
  }
  // A lane keeps only one pull per sender and block for the last evaluation.
  if (committed_.has_value() && pull.want == Want::kExact) {
    std::erase_if(held, [&](const PullKey& other) {
      return std::get<0>(other) == delivery_.sender && std::get<1>(other) == pull.block &&
             std::get<4>(other) == static_cast<int>(Want::kExact);
    });
  }
  held.insert(key);
}

void RunWatch::OnSent(const LaneState& lane, const Outgoing& message) {
  const WireHeader& header = message.header;
  switch (header.kind) {
    case MessageKind::kRefused:
      delivery_.refused = true;
      return;
    case MessageKind::kWeights:
      CheckServed(lane, message);
      return;
    case MessageKind::kReceived:
    case MessageKind::kCommitted:
      break;
    default:
      return;
  }
  const WireHeader& push = delivery_.header;
  const bool to_this = delivery_.under_way && push.kind == MessageKind::kPush &&
                       message.to == delivery_.sender && push.block == header.block &&
                       push.first_segment == header.first_segment && push.clock == header.clock &&
                       push.virtual_worker == header.virtual_worker;
  if (to_this && (push.timeline != lane.timeline || push.view != lane.view)) {
    Violation(absl::StrCat("lane ", lane.lane, ", in view ", lane.view, " of timeline ",
                           lane.timeline, ", accepted ", PushText(push), ", of view ", push.view,
                           " and timeline ", push.timeline));
  }
  if (header.kind == MessageKind::kCommitted) NoteCommitted(lane, header);
}

void RunWatch::CheckOwner(const LaneState& lane, uint32_t segment) {
  if (!one_owner_) return;
  const auto [owner, is_new] = owner_.try_emplace({lane.timeline, lane.view, segment}, lane.lane);
  if (owner->second == lane.lane) return;
  Violation(absl::StrCat("lanes ", owner->second, " and ", lane.lane, " both serve segment ",
                         segment, " in view ", lane.view, " of timeline ", lane.timeline));
}

void RunWatch::NoteCommitted(const LaneState& lane, const WireHeader& push) {
  const uint32_t first = table_.id(push.block, push.first_segment);
  for (uint32_t id = first; id < first + push.segment_count; ++id) {
    CheckOwner(lane, id);
    if (!committed_.has_value()) continue;
    uint64_t& clock = Committed(lane, id)[push.virtual_worker];
    if (push.clock > clock) {
      Violation(absl::StrCat("segment ", id, " commits clock ", push.clock, " of virtual worker ",
                             push.virtual_worker, ", but has not committed clock ", clock));
    }
    clock = std::max(clock, push.clock + 1);
  }
}

void RunWatch::CheckServed(const LaneState& lane, const Outgoing& message) {
  const WireHeader& header = message.header;
  const uint32_t first = table_.id(header.block, header.first_segment);
  for (uint32_t id = first; id < first + header.segment_count; ++id) CheckOwner(lane, id);
  const PullKey key = KeyOf(header, message.to);
  held_[lane.lane].erase(key);
  const WireHeader& pull = delivery_.header;
  if (delivery_.under_way && pull.kind == MessageKind::kPull && delivery_.sender == message.to &&
      KeyOf(pull, message.to) == key) {
    delivery_.answered = true;
    if (pull.timeline != lane.timeline || pull.view != lane.view) {
      Violation(absl::StrCat("lane ", lane.lane, ", in view ", lane.view, " of timeline ",
                             lane.timeline, ", answered a pull of view ", pull.view,
                             " and timeline ", pull.timeline));
    }
  }
  if (header.ack_id != 0) outstanding_[{lane.lane, message.to}].insert(header.ack_id);
  if (bounded_) CheckBound(lane, header);
}

void RunWatch::CheckBound(const LaneState& lane, const WireHeader& served) {
  const uint64_t clock = served.clock;
  const uint64_t needed = served.want == Want::kExact ? clock
                          : clock > staleness_        ? clock - staleness_
                                                      : 0;
  const uint32_t first = table_.id(served.block, served.first_segment);
  for (uint32_t id = first; id < first + served.segment_count; ++id) {
    const std::vector<uint64_t>& next = Committed(lane, id);
    for (uint32_t v = 0; v < virtual_workers_; ++v) {
      if (lane.live != nullptr && !lane.live->has(v)) continue;
      const uint64_t last = v < lane.final_clocks.size() ? lane.final_clocks[v] : ~uint64_t{0};
      if (next[v] >= std::min(needed, last)) continue;
      return Violation(absl::StrCat("lane ", lane.lane, " serves segment ", id, " for clock ",
                                    clock, ", but of virtual worker ", v, " it has committed only ",
                                    next[v], " clocks: staleness ", staleness_, " requires ",
                                    needed));
    }
  }
}

void RunWatch::OnMalformed(const LaneState& lane, const WireHeader& header,
                           uint64_t payload_bytes) {
  Violation(absl::StrCat(
      "a message of kind ", static_cast<int>(header.kind), " from ", PeerName(header.sender),
      " is malformed for lane ", lane.lane, ", in view ", lane.view, " of timeline ", lane.timeline,
      ": view ", header.view, ", timeline ", header.timeline, ", block ", header.block,
      ", segments ", header.first_segment, " + ", header.segment_count, ", virtual workers ",
      header.virtual_worker, " + ", header.virtual_worker_count, ", clock ", header.clock,
      ", version ", header.version, ", number ", header.ack_id, ", codec ",
      static_cast<int>(header.codec), ", payload of ", payload_bytes, " bytes"));
}

void RunWatch::OnPulled(uint32_t worker, uint32_t block, uint64_t version,
                        std::span<const float> weights) {
  if (committed_.has_value()) return;
  const uint64_t hash = HashOf(weights);
  seen_.try_emplace({block, version}, hash);
  if (options_.expected == nullptr) return;
  const auto expected = options_.expected->find({block, version});
  if (expected == options_.expected->end() || expected->second == hash) return;
  Violation(absl::StrCat("worker ", worker, " got weights of block ", block, " at version ",
                         version, " that differ from those of the job without faults"));
}

}  // namespace tug
