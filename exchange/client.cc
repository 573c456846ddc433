// SPDX-License-Identifier: Apache-2.0
#include "exchange/client.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/overloaded.h"

namespace tug {
namespace {

// Interval between checks for overdue requests.
constexpr absl::Duration kTick = absl::Milliseconds(50);

ExchangeOptions Timed(ExchangeOptions options, const TimeSource& time) {
  options.time = &time;
  return options;
}

}  // namespace

ExchangeClient::ExchangeClient(ExchangeOptions options, const SegmentTable& table,
                               std::unique_ptr<Transport> transport)
    : frees_gradients_(options.frees_gradients),
      transport_(std::move(transport)),
      sender_(*transport_),
      exchange_(
          Timed(std::move(options), time_), table,
          {.send = [this](Outgoing message) { sender_.Send(std::move(message)); },
           .pulled = [this](BlockPulled event) { events_.emplace_back(std::move(event)); },
           .committed = [this](PushCommitted event) { events_.emplace_back(event); },
           .received = [this](PushReceived event) { events_.emplace_back(event); },
           .deferred = [this](PushDeferred event) { events_.emplace_back(event); },
           .shares_memory = [this](PeerId peer) { return transport_->SharesMemoryWith(peer); },
           .new_buffer = [this](size_t size_bytes) { return transport_->NewBuffer(size_bytes); }}),
      next_tick_(time_.Now() + kTick),
      open_(table.num_blocks(), frees_gradients_),
      awaited_(table.num_blocks()),
      thread_([this] { RunOwnThread(); }) {}

ExchangeClient::~ExchangeClient() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    transport_->Wake();
  }
  thread_.join();
}

// ---- driving ----

void ExchangeClient::Turn(absl::Time now, std::optional<absl::Duration> poll) {
  std::swap(requests_, taken_);
  mutex_.Unlock();
  sender_.Retry();
  for (Request& request : taken_) CarryOut(std::move(request), now);
  taken_.clear();
  std::optional<LinkChoices> choices;
  if (now >= next_tick_) {
    exchange_.OnTick(now);
    choices = exchange_.choices();
    next_tick_ = now + kTick;
  }
  if (poll.has_value()) {
    transport_->Poll(sender_.PollTime(*poll),
                     [&](const Message& message) { exchange_.OnMessage(message, now); });
  }
  mutex_.Lock();
  for (Event& event : events_) Take(std::move(event));
  events_.clear();
  counters_ = exchange_.counters();
  const std::span<const double> squares = exchange_.residual_squares();
  residual_squares_.assign(squares.begin(), squares.end());
  transport_counters_ = transport_->counters();
  if (!choices.has_value()) return;
  choices_ = *std::move(choices);
  for (uint32_t block = 0; block < awaited_.size(); ++block) {
    awaited_[block] = exchange_.AwaitedOf(block);
  }
}

void ExchangeClient::CarryOut(Request request, absl::Time now) {
  const auto carry_out = Overloaded{
      [&](PushRequest& push) { exchange_.Push(std::move(push), now); },
      [&](PullRequest& pull) { exchange_.Pull(std::move(pull), now); },
      [&](const ExchangeSchedule& schedule) { exchange_.SetSchedule(schedule, now); },
      [&](ViewRequest& view) { EnterView(std::move(view), now); },
      [&](const CarriedRequest& carried) { exchange_.SetCarried(carried, now); },
      [&](CopyRequest& copy) {
        copy.copy->residuals = exchange_.CopyResiduals(copy.copy->virtual_worker);
        events_.emplace_back(std::move(copy));
      },
      [&](RestoreRequest& restore) {
        exchange_.RestoreResiduals(restore.virtual_worker, std::move(restore.residuals));
      },
      [&](const GiveUpRequest& give_up) { exchange_.GiveUpPull(give_up.block); },
  };
  std::visit(carry_out, request);
}

void ExchangeClient::EnterView(ViewRequest view, absl::Time now) {
  for (const LaneAddress& lane : view.lanes) {
    const absl::Status connected = transport_->Connect(lane.peer, lane.endpoint);
    if (!connected.ok()) Cancel(connected);
  }
  exchange_.SetView(std::move(view), now);
}

void ExchangeClient::Take(Event event) {
  const auto take = Overloaded{
      [&](BlockPulled& pulled) { open_.OnEvent(std::move(pulled), time_.Now()); },
      [&](const PushCommitted& committed) {
        cancelled_.Update(open_.OnEvent(committed, time_.Now()));
      },
      [&](const PushReceived& received) { open_.OnEvent(received); },
      [&](const PushDeferred& deferred) { open_.OnEvent(deferred); },
      [](const CopyRequest& copied) { copied.copy->done = true; },
  };
  std::visit(take, event);
}

template <typename Done>
void ExchangeClient::Drive(Driver driver, const Done& done, absl::Time deadline) {
  driver_ = driver;
  ++drives_;
  absl::Time now = time_.Now();
  do {
    Turn(now, std::clamp(deadline - now, absl::ZeroDuration(), kTick));
    now = time_.Now();
  } while (!done() && now < deadline);
  StopDriving();
}

void ExchangeClient::StopDriving() {
  // Requests made while there is a driver are left to it.
  while (!requests_.empty()) Turn(time_.Now(), std::nullopt);
  driver_ = Driver::kNobody;
}

template <typename Done>
bool ExchangeClient::WaitUntil(const Done& done, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  if (done()) return true;
  const absl::Time deadline = time_.Now() + timeout;
  const auto done_or_my_turn = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return done() || driver_ == Driver::kNobody;
  };
  ++waiting_;
  while (!done()) {
    if (driver_ == Driver::kNobody) {
      Drive(Driver::kCaller, done, deadline);
      break;
    }
    const absl::Duration left = deadline - time_.Now();
    if (left <= absl::ZeroDuration()) break;
    if (driver_ == Driver::kOwnThread) transport_->Wake();  // it yields to the waiting caller
    mutex_.AwaitWithTimeout(absl::Condition(&done_or_my_turn), left);
  }
  --waiting_;
  return done();
}

void ExchangeClient::RunOwnThread() {
  absl::MutexLock lock(&mutex_);
  const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stop_ || waiting_ > 0; };
  const auto nobody_drives = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stop_ || driver_ == Driver::kNobody;
  };
  while (!stop_) {
    const uint64_t drives = drives_;
    mutex_.AwaitWithTimeout(absl::Condition(&stop_), kLinger);
    if (drives_ != drives || wanted()) continue;  // callers are driving
    if (driver_ == Driver::kNobody) {
      Drive(Driver::kOwnThread, wanted, absl::InfiniteFuture());
    } else {  // a caller drives for long: check again when it stops
      mutex_.Await(absl::Condition(&nobody_drives));
    }
  }
}

// ---- callers ----

void ExchangeClient::HandOver(Request request) {
  requests_.push_back(std::move(request));
  if (driver_ == Driver::kNobody) {
    driver_ = Driver::kCaller;
    ++drives_;
    StopDriving();  // executes the request
  } else if (requests_.size() == 1) {
    transport_->Wake();  // only for the first queued request
  }
}

void ExchangeClient::Push(PushRequest request) {
  absl::MutexLock lock(&mutex_);
  open_.OnPush(request.block, request.virtual_worker, time_.Now());
  HandOver(std::move(request));
}

void ExchangeClient::Pull(PullRequest request) {
  absl::MutexLock lock(&mutex_);
  open_.OnPull(request.block, time_.Now());
  HandOver(std::move(request));
}

void ExchangeClient::SetSchedule(const ExchangeSchedule& schedule) {
  absl::MutexLock lock(&mutex_);
  HandOver(schedule);
}

void ExchangeClient::SetView(ViewRequest view) {
  absl::MutexLock lock(&mutex_);
  HandOver(std::move(view));
}

void ExchangeClient::SetCarried(CarriedRequest carried) {
  absl::MutexLock lock(&mutex_);
  HandOver(std::move(carried));
}

absl::StatusOr<std::vector<SegmentResidual>> ExchangeClient::CopyResiduals(
    uint32_t virtual_worker) {
  const auto copy = std::make_shared<ResidualCopy>(ResidualCopy{.virtual_worker = virtual_worker});
  {
    absl::MutexLock lock(&mutex_);
    HandOver(CopyRequest{copy});
  }
  const auto copied = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cancelled_.ok() || copy->done;
  };
  WaitUntil(copied, absl::InfiniteDuration());
  absl::MutexLock lock(&mutex_);
  if (!copy->done) return cancelled_;
  return std::move(copy->residuals);
}

void ExchangeClient::RestoreResiduals(uint32_t virtual_worker,
                                      std::vector<SegmentResidual> residuals) {
  absl::MutexLock lock(&mutex_);
  HandOver(RestoreRequest{virtual_worker, std::move(residuals)});
}

absl::StatusOr<bool> ExchangeClient::WaitPulled(uint32_t block, uint64_t version,
                                                absl::Duration timeout) {
  const auto pulled = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cancelled_.ok() || open_.IsPulled(block, version);
  };
  const bool ended = WaitUntil(pulled, timeout);
  absl::MutexLock lock(&mutex_);
  if (!cancelled_.ok()) return cancelled_;
  return ended;
}

absl::Status ExchangeClient::GiveUpPull(uint32_t block) {
  {
    absl::MutexLock lock(&mutex_);
    HandOver(GiveUpRequest{block});
  }
  const auto closed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cancelled_.ok() || !open_.HasOpenPull(block);
  };
  WaitUntil(closed, absl::InfiniteDuration());
  absl::MutexLock lock(&mutex_);
  open_.Forget(block);
  return cancelled_;
}

OpenRequests::Versions ExchangeClient::PulledVersions(uint32_t block) const {
  absl::MutexLock lock(&mutex_);
  return open_.PulledVersions(block);
}

InPlaceWeights ExchangeClient::TakeInPlace(uint32_t block) {
  absl::MutexLock lock(&mutex_);
  return open_.TakeInPlace(block);
}

absl::Status ExchangeClient::WaitCommitted(uint32_t block, uint32_t virtual_worker) {
  const auto committed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cancelled_.ok() || open_.IsCommitted(block, virtual_worker);
  };
  WaitUntil(committed, absl::InfiniteDuration());
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

bool ExchangeClient::IsCommitted(uint32_t block, uint32_t virtual_worker) const {
  absl::MutexLock lock(&mutex_);
  return !cancelled_.ok() || open_.IsCommitted(block, virtual_worker);
}

absl::StatusOr<bool> ExchangeClient::WaitReceived(uint32_t block, uint32_t virtual_worker,
                                                  absl::Duration patience) {
  TUG_CHECK(frees_gradients_);
  const auto ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cancelled_.ok() || open_.IsReceived(block, virtual_worker);
  };
  const auto ended_or_deferred = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return ended() || open_.IsDeferred(block, virtual_worker);
  };
  WaitUntil(ended_or_deferred, absl::InfiniteDuration());
  WaitUntil(ended, patience);
  absl::MutexLock lock(&mutex_);
  if (!cancelled_.ok()) return cancelled_;
  return open_.IsReceived(block, virtual_worker);
}

void ExchangeClient::Cancel(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  if (!cancelled_.ok()) return;
  cancelled_ = std::move(reason);
  transport_->Wake();  // so that a driving caller checks cancelled_
}

ExchangeClient::OpenTimeReading ExchangeClient::OpenTime() const {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = time_.Now();
  return {now, open_.OpenTime(now)};
}

ExchangeCounters ExchangeClient::counters() const {
  absl::MutexLock lock(&mutex_);
  return counters_;
}

double ExchangeClient::ResidualSquares(uint32_t virtual_worker) const {
  absl::MutexLock lock(&mutex_);
  return virtual_worker < residual_squares_.size() ? residual_squares_[virtual_worker] : 0;
}

Awaited ExchangeClient::AwaitedOf(uint32_t block) const {
  absl::MutexLock lock(&mutex_);
  return awaited_[block];
}

LinkChoices ExchangeClient::choices() const {
  absl::MutexLock lock(&mutex_);
  return choices_;
}

TransportCounters ExchangeClient::transport_counters() const {
  absl::MutexLock lock(&mutex_);
  return transport_counters_;
}

}  // namespace tug
