// SPDX-License-Identifier: Apache-2.0
#include "exchange/exchange.h"

#include <utility>

#include "base/check.h"

namespace tug {

Exchange::Exchange(ExchangeOptions options, const SegmentTable& table, ExchangeSinks sinks)
    : options_(std::move(options)),
      sinks_(std::move(sinks)),
      table_(table),
      partition_bytes_(options_.comm.partition_bytes()),
      plan_(std::make_shared<PartitionPlan>(table, options_.lane_of_segment, options_.pull_lanes,
                                            partition_bytes_)),
      buffers_(options_.comm.credit_bytes(), sinks_.new_buffer),
      encoder_(options_, table, sinks_.new_buffer, sinks_.shares_memory),
      versions_(table),
      pushes_(options_, plan_, sinks_, encoder_, buffers_, versions_, counters_),
      pulls_(options_, table_, plan_, sinks_, buffers_, versions_, counters_) {}

void Exchange::OnMessage(const Message& message, absl::Time now) {
  const WireHeader& header = message.header;
  // A refusal has the lane's view and timeline, which may differ from ours.
  const bool ours = header.timeline == options_.timeline && header.view == options_.view;
  if (header.kind == MessageKind::kWeights && header.job == options_.job && !ours &&
      header.timeline == options_.timeline) {
    pulls_.OnOldWeights(header);
  }
  if (header.job != options_.job || (!ours && header.kind != MessageKind::kRefused)) {
    ++counters_.ignored;
    return;
  }
  switch (header.kind) {
    case MessageKind::kReceived:
    case MessageKind::kCommitted:
    case MessageKind::kDropped:
    case MessageKind::kDeferred:
    case MessageKind::kPushWanted:
      return pushes_.OnAnswer(header, now);
    case MessageKind::kWeights:
      return pulls_.OnWeights(message, now);
    case MessageKind::kRefused:
      ++counters_.refused;  // OnTick resends
      return;
    case MessageKind::kPush:
    case MessageKind::kPull:
    case MessageKind::kWeightsReceived:
    case MessageKind::kNorms:
    case MessageKind::kNormsWanted:
    case MessageKind::kUpdate:
    case MessageKind::kCopied:
    case MessageKind::kCopyWanted:
    case MessageKind::kCopy:
    case MessageKind::kElements:
    case MessageKind::kInCollective:
    case MessageKind::kRankFailed:
    case MessageKind::kClearToSend:
    case MessageKind::kPushAsked:
      ++counters_.ignored;  // not for a worker
  }
}

void Exchange::MakePlan() {
  plan_ = std::make_shared<PartitionPlan>(table_, options_.lane_of_segment, options_.pull_lanes,
                                          partition_bytes_);
}

void Exchange::SetSchedule(const ExchangeSchedule& schedule, absl::Time now) {
  partition_bytes_ = schedule.partition_bytes;
  MakePlan();
  buffers_.set_keep_bytes(schedule.credit_bytes);
  pushes_.SetCredit(schedule.credit_bytes, now);
}

void Exchange::SetView(ViewRequest view, absl::Time now) {
  if (view.view <= options_.view) return;
  options_.view = view.view;
  const bool same_owners = view.lane_of_segment == options_.lane_of_segment;
  const bool same_cut = same_owners && view.pull_lanes == options_.pull_lanes;
  TUG_CHECK_EQ(view.lane_of_segment.size(), options_.lane_of_segment.size());
  options_.lane_of_segment = std::move(view.lane_of_segment);
  options_.pull_lanes = std::move(view.pull_lanes);
  if (!same_cut) MakePlan();
  if (same_owners) {
    pushes_.SendAllAgain(now);
  } else {
    encoder_.KeepLanes(options_.lane_of_segment);
    pulls_.KeepLanes(options_.lane_of_segment);
    pushes_.CutAllAgain(now);
  }
  same_cut ? pulls_.AskForAllAgain(now) : pulls_.CutAllAgain(now);
}

void Exchange::SetCarried(const CarriedRequest& carried, absl::Time now) {
  pushes_.GiveUpAllBut(carried.virtual_workers, now);
}

std::vector<SegmentResidual> Exchange::CopyResiduals(uint32_t virtual_worker) {
  if (!encoder_.error_feedback()) return {};
  pushes_.EncodeAllOf(virtual_worker);
  return encoder_.CopyResiduals(virtual_worker);
}

// If every push is an update, pushes are committed at once, and pulls wait at the lane for other
// workers.
Awaited Exchange::AwaitedOf(uint32_t block) const {
  const Awaited pushed = pushes_.AwaitedOf(block);
  if (pushed != Awaited::kNothing || !pulls_.IsOpen(block)) return pushed;
  return options_.mode.update_per_push && pulls_.HasNothingOf(block) ? Awaited::kSum
                                                                     : Awaited::kWire;
}

ExchangeCounters Exchange::counters() const {
  ExchangeCounters counters = counters_;
  counters.outstanding_bytes = pushes_.outstanding_bytes();
  counters.waiting_bytes = pushes_.waiting_bytes();
  return counters;
}

LinkChoices Exchange::choices() const {
  return {encoder_.chosen(), pulls_.chosen(), encoder_.method_names()};
}

void Exchange::OnTick(absl::Time now) {
  pushes_.OnTick(now);
  pulls_.OnTick(now);
}

}  // namespace tug
