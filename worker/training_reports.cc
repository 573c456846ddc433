// SPDX-License-Identifier: Apache-2.0
// Contents of a worker's heartbeats.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "blocks/view_lanes.h"
#include "exchange/chosen_text.h"
#include "worker/training.h"

namespace tug {
namespace {

constexpr size_t kMaxChoiceNotices = 8;  // notices per timeline

// `asynchronous`: workers do not wait for each other (sync.policy ASP).
NodeActivity::Doing DoingOf(CurrentActivity::Doing doing, Awaited awaited, bool asynchronous) {
  switch (doing) {
    case CurrentActivity::Doing::kResting:
      return NodeActivity::RESTING;
    case CurrentActivity::Doing::kComputing:
      return NodeActivity::COMPUTING;
    case CurrentActivity::Doing::kReading:
      return NodeActivity::WAITING_FOR_DATA;
    case CurrentActivity::Doing::kWaiting:
      break;
  }
  if (awaited == Awaited::kQueue) return NodeActivity::WAITING_FOR_QUEUE;
  return awaited == Awaited::kSum && !asynchronous ? NodeActivity::WAITING_FOR_SUM
                                                   : NodeActivity::WAITING_FOR_WIRE;
}

}  // namespace

void Training::AddTo(HeartbeatRequest& beat) {
  board_.AddTo(beat);
  NodeCounters& counters = *beat.mutable_counters();
  absl::MutexLock lock(&mutex_);
  counters.set_peak_memory_bytes(memory_.Sample(ready_ ? exchange_->SharedBytes() : 0));
  beat.set_ready(ready_);
  *beat.mutable_activity() = Activity();
  if (!ready_) return;
  const TransportCounters transport = exchange_->transport_counters();
  counters.set_messages_dropped(transport.dropped);
  counters.set_socket_bytes(transport.socket_bytes);
  counters.set_shared_memory_bytes(transport.shared_memory_bytes());
  counters.MergeFrom(predicted_);
  const HeldBytes held = loop_->held();
  counters.set_weight_bytes(held.weights);
  counters.set_gradient_bytes(held.gradients);
  const ExchangeCounters exchange = exchange_->counters();
  counters.set_most_outstanding_bytes(exchange.most_outstanding_bytes);
  counters.set_encode_seconds(exchange.encode_seconds);
  ReportChoices();
  for (const Notice& notice : notices_) *beat.add_notices() = notice;
  if (residuals_.has_value()) residuals_->AddTo(beat);
}

// Until it is ready it reads the data and builds.
NodeActivity Training::Activity() const {
  NodeActivity activity;
  activity.set_doing(NodeActivity::WAITING_FOR_DATA);
  if (!ready_) return activity;
  const CurrentActivity::Activity now = loop_->activity();
  const bool asynchronous = registered_.config().sync().policy() == SyncConfig::ASP;
  activity.set_doing(DoingOf(now.doing, exchange_->AwaitedOf(now.block), asynchronous));
  activity.set_block(now.block);
  activity.set_clock(now.clock);
  const absl::Duration time = time_.Now() - now.since;
  activity.set_seconds(std::max(0.0, absl::ToDoubleSeconds(time)));
  return activity;
}

WorkerFigures Training::figures() const {
  WorkerFigures figures{.clock = board_.state().clock};
  absl::MutexLock lock(&mutex_);
  figures.ready = ready_;
  if (!ready_) return figures;
  const ExchangeCounters exchange = exchange_->counters();
  figures.pushed_bytes = exchange.pushed_bytes;
  figures.pulled_bytes = exchange.pulled_bytes;
  figures.waiting_bytes = exchange.waiting_bytes;
  figures.outstanding_bytes = exchange.outstanding_bytes;
  figures.most_outstanding_bytes = exchange.most_outstanding_bytes;
  figures.encode_seconds = exchange.encode_seconds;
  figures.resent = exchange.resent;
  figures.deferred = exchange.deferred;
  figures.dropped_pushes = exchange.dropped;
  figures.refused = exchange.refused;
  const TransportCounters transport = exchange_->transport_counters();
  figures.socket_bytes = transport.socket_bytes;
  figures.sent_bytes = transport.sent_bytes;
  figures.received_bytes = transport.received_bytes;
  figures.messages_dropped = transport.dropped;
  figures.messages_lost = transport.lost;
  const HeldBytes held = loop_->held();
  figures.weight_bytes = held.weights;
  figures.gradient_bytes = held.gradients;
  figures.predicted_held_bytes = predicted_.predicted_held_bytes();
  figures.shared_bytes = exchange_->SharedBytes();
  return figures;
}

void Training::ReportChoices() {
  const LinkChoices choices = exchange_->choices();
  const std::map<uint32_t, std::string> servers = ServerNames(*view_);
  const std::string now = DescribeChoices(choices, servers, /*rates=*/false);
  if (!now.empty() && now != told_choices_ && choices_told_ < kMaxChoiceNotices) {
    told_choices_ = now;
    ++choices_told_;
    Notice& notice = notices_.emplace_back();
    notice.set_key(absl::StrCat("choices/", registered_.node_id(), "/", choices_told_));
    notice.set_text(
        absl::StrCat(registered_.name(), " ", DescribeChoices(choices, servers, /*rates=*/true)));
  }
}

}  // namespace tug
