#include "exchange/exchange.h"

#include <utility>

namespace tug {

Exchange::Exchange(ExchangeOptions options, const SegmentTable& table, ExchangeSinks sinks)
    : options_(std::move(options)),
      sinks_(std::move(sinks)),
      table_(table),
      plan_(std::make_shared<PartitionPlan>(table, options_.lane_of_segment,
                                            options_.comm.partition_bytes())),
      buffers_(options_.comm.credit_bytes(), sinks_.new_buffer),
      versions_(table),
      pushes_(options_, plan_, sinks_, buffers_, versions_, counters_),
      pulls_(options_, plan_, sinks_, buffers_, versions_, counters_) {}

void Exchange::OnMessage(const Message& message, absl::Time now) {
  const WireHeader& header = message.header;
  // A refusal bears the lane's view and timeline, which need not be ours.
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
      return pulls_.OnWeights(message);
    case MessageKind::kRefused:
      ++counters_.refused;  // retriable: OnTick sends again
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
      ++counters_.ignored;  // not for a worker
  }
}

void Exchange::SetSchedule(const ExchangeSchedule& schedule, absl::Time now) {
  plan_ =
      std::make_shared<PartitionPlan>(table_, options_.lane_of_segment, schedule.partition_bytes);
  buffers_.set_keep_bytes(schedule.credit_bytes);
  pushes_.SetCredit(schedule.credit_bytes, now);
}

void Exchange::SetView(uint32_t view, absl::Time now) {
  if (view <= options_.view) return;
  options_.view = view;
  pushes_.SendAllAgain(now);
  pulls_.AskForAllAgain(now);
}

void Exchange::SetCarried(const CarriedRequest& carried, absl::Time now) {
  options_.virtual_worker = carried.virtual_worker;
  options_.virtual_worker_count = carried.virtual_worker_count;
  pushes_.GiveUpAllBut(carried.virtual_workers, now);
}

void Exchange::OnTick(absl::Time now) {
  pushes_.OnTick(now);
  pulls_.OnTick(now);
}

}  // namespace tug
