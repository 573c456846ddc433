// A lane thread's part in reducing sums among lanes (`exchange: ALL_REDUCE`): it drives the shard's
// LaneReduction.
#include <algorithm>
#include <utility>
#include <vector>

#include "exchange/view_lanes.h"
#include "server/lane.h"

namespace tug {
namespace {

// Steps of a reduction between looks for messages.
constexpr int kWorkBetweenPolls = 4;
// For a lane to come to a reduction: its worker may evaluate for long. Lost nodes are noticed by
// the coordinator.
constexpr absl::Duration kPatience = absl::Hours(1);

}  // namespace

LaneReduction::Options LaneThread::ReductionOptions(const View& view) const {
  LaneReduction::Options options;
  options.collective = job_.config.collective();
  options.group.peers = ReducingLanes(view);
  const auto self =
      std::find(options.group.peers.begin(), options.group.peers.end(), LanePeer(number_));
  options.group.rank = static_cast<uint32_t>(self - options.group.peers.begin());
  options.group.job = job_.job;
  options.group.group = view.timeline();
  options.group.timeout = absl::Milliseconds(job_.config.fault().failure_timeout_ms());
  options.group.patience = kPatience;
  return options;
}

void LaneThread::SetOverNetwork(const View& view) {
  std::vector<bool> over_network;
  for (const PeerId peer : ReducingLanes(view)) {
    over_network.push_back(peer != LanePeer(number_) && !transport_->SharesMemoryWith(peer));
  }
  shard_->reduction()->SetOverNetwork(std::move(over_network));
}

bool LaneThread::Reduce() {
  LaneReduction* const reduction = shard_->reduction();
  if (reduction == nullptr) return false;
  const absl::Time now = time_.Now();
  if (now >= next_reduction_tick_) {
    reduction->OnTick(now);
    next_reduction_tick_ = now + RankGroup::kTick;
  }
  // What was sent has left with the Poll before.
  bool busy = reduction->HandBackOne(now);
  for (int i = 0; i < kWorkBetweenPolls && reduction->Work(); ++i) busy = true;
  if (const absl::Status status = reduction->status(); !status.ok()) Fail(status);
  return busy || !reduction->ReadyToWait() || !postponed_.empty();
}

void LaneThread::StayInReduction() {
  const absl::Time now = time_.Now();
  shard_->reduction()->OnTick(now);
  sender_.Retry();
  transport_->Poll(absl::ZeroDuration(), [&](Message message) {
    if (LaneReduction::IsFor(message.header.kind)) {
      shard_->OnMessage(std::move(message), now);
    } else {
      postponed_.push_back(std::move(message));
    }
  });
}

}  // namespace tug
