#include "exchange/client.h"

#include <algorithm>
#include <utility>

#include "base/time_source.h"

namespace tug {
namespace {

// How often overdue requests are looked for; also the longest a stop takes to be seen.
constexpr absl::Duration kTick = absl::Milliseconds(50);

}  // namespace

ExchangeClient::ExchangeClient(ExchangeOptions options, const SegmentTable& table,
                               std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      exchange_(std::move(options), table,
                {.send =
                     [this](Outgoing message) {
                       // A peer that is not reachable or a full queue: the machine sends again
                       // after resend_ms.
                       transport_->Send(std::move(message)).IgnoreError();
                     },
                 .pulled =
                     [this](BlockPulled event) {
                       absl::MutexLock lock(&mutex_);
                       pulled_version_[event.block] = event.version;
                     },
                 .committed =
                     [this](PushCommitted event) {
                       absl::MutexLock lock(&mutex_);
                       std::erase(open_pushes_[event.block], event.virtual_worker);
                     }}),
      pulled_version_(table.num_blocks()),
      open_pushes_(table.num_blocks()),
      thread_([this](std::stop_token stop) { Loop(stop); }) {}

ExchangeClient::~ExchangeClient() {
  thread_.request_stop();
  transport_->Wake();
  thread_.join();
}

void ExchangeClient::Add(Request request) {
  {
    absl::MutexLock lock(&mutex_);
    if (const auto* push = std::get_if<PushRequest>(&request)) {
      open_pushes_[push->block].push_back(push->virtual_worker);
    }
    requests_.push_back(std::move(request));
  }
  transport_->Wake();
}

void ExchangeClient::Push(PushRequest request) { Add(std::move(request)); }
void ExchangeClient::Pull(PullRequest request) { Add(std::move(request)); }

std::vector<ExchangeClient::Request> ExchangeClient::TakeRequests() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(requests_, {});
}

void ExchangeClient::Loop(std::stop_token stop) {
  const RealTime time;
  absl::Time next_tick = time.Now() + kTick;
  while (!stop.stop_requested()) {
    const absl::Time now = time.Now();
    for (Request& request : TakeRequests()) {
      if (auto* push = std::get_if<PushRequest>(&request)) {
        exchange_.Push(std::move(*push), now);
      } else {
        exchange_.Pull(std::get<PullRequest>(request), now);
      }
    }
    if (now >= next_tick) {
      exchange_.OnTick(now);
      next_tick = now + kTick;
    }
    PublishCounters();
    transport_->Poll(kTick, [&](Message message) { exchange_.OnMessage(message, now); });
  }
}

void ExchangeClient::PublishCounters() {
  absl::MutexLock lock(&mutex_);
  counters_ = exchange_.counters();
  transport_counters_ = transport_->counters();
}

absl::StatusOr<bool> ExchangeClient::WaitPulled(uint32_t block, uint64_t version,
                                                absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto arrived = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cancelled_.ok() ||
           (pulled_version_[block].has_value() && *pulled_version_[block] >= version);
  };
  const bool ended = mutex_.AwaitWithTimeout(absl::Condition(&arrived), timeout);
  if (!cancelled_.ok()) return cancelled_;
  return ended;
}

absl::Status ExchangeClient::WaitCommitted(uint32_t block, uint32_t virtual_worker) {
  absl::MutexLock lock(&mutex_);
  const auto committed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const std::vector<uint32_t>& open = open_pushes_[block];
    return !cancelled_.ok() || std::find(open.begin(), open.end(), virtual_worker) == open.end();
  };
  mutex_.Await(absl::Condition(&committed));
  return cancelled_;
}

void ExchangeClient::Cancel(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_.ok()) cancelled_ = std::move(reason);
}

ExchangeCounters ExchangeClient::counters() const {
  absl::MutexLock lock(&mutex_);
  return counters_;
}

TransportCounters ExchangeClient::transport_counters() const {
  absl::MutexLock lock(&mutex_);
  return transport_counters_;
}

}  // namespace tug
