// SPDX-License-Identifier: Apache-2.0
#include "collective/communicator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu/spin.h"
#include "base/status_macros.h"
#include "collective/schedules/recursive_doubling.h"

namespace tug {
namespace {

// Messages applied between two polls.
constexpr int kWorkBetweenPolls = 4;
// Poll timeout while a queue is full.
constexpr absl::Duration kRetry = absl::Milliseconds(1);
// Time to send the notices of a failure to ranks whose queues are full.
constexpr absl::Duration kLeaving = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(CommunicatorOptions options,
                                                                   Transport& transport) {
  TUG_CHECK_EQ(options.endpoints.size(), options.group.peers.size());
  const std::vector<PeerId> peers = options.group.peers;
  const std::vector<std::string> endpoints = options.endpoints;
  std::unique_ptr<Communicator> communicator(new Communicator(std::move(options), transport));
  for (uint32_t rank = 0; rank < communicator->rank_; ++rank) {
    RETURN_IF_ERROR(transport.Connect(peers[rank], endpoints[rank]));
  }
  RETURN_IF_ERROR(communicator->Meet());
  RETURN_IF_ERROR(communicator->AgreeOnBoard());
  return communicator;
}

Communicator::Communicator(CommunicatorOptions options, Transport& transport)
    : rank_(options.group.rank),
      patience_(options.group.patience),
      spin_(DefaultSpin()),
      transport_(transport),
      group_(options.group, {.send = [this](Outgoing message) { Send(std::move(message)); },
                             .wake = [&transport] { transport.Wake(); }}),
      board_(std::make_unique<MessageBoard>(
          rank_, world(), transport.NewBuffer(MessageBoard::BoardBytes(world())))),
      links_(options.group.peers.size()) {}

// A rank greets all lower ranks, over the connections it has made, until they greet back. It
// repeats the greeting, since a rank still in an earlier group ignores it.
absl::Status Communicator::Meet() {
  links_[rank_].met = true;
  const absl::Time deadline = time_.Now() + patience_;
  const auto met = [](const Link& link) { return link.met; };
  while (!std::all_of(links_.begin(), links_.end(), met)) {
    const absl::Time now = time_.Now();
    if (now >= next_tick_) {
      for (uint32_t rank = 0; rank < rank_; ++rank) {
        if (!links_[rank].met) Greet(rank);
      }
      Tick(now);
      for (uint32_t rank = 0; rank < world(); ++rank) {
        const Link& link = links_[rank];
        if (!link.met && link.lost_for_good()) group_.Abort(rank, link.lost);
      }
    }
    if (now >= deadline) {
      const auto missing = std::find_if_not(links_.begin(), links_.end(), met) - links_.begin();
      group_.Abort(static_cast<uint32_t>(missing),
                   absl::StrCat("did not connect within ", absl::FormatDuration(patience_)),
                   absl::StatusCode::kDeadlineExceeded);
    }
    if (!group_.status().ok()) {
      Leave();
      return group_.status();
    }
    Poll(/*wait=*/true);
  }
  Poll(/*wait=*/false);
  std::vector<bool> over_network(world());
  for (uint32_t rank = 0; rank < world(); ++rank) {
    over_network[rank] = rank != rank_ && !transport_.SharesMemoryWith(group_.peer(rank));
  }
  group_.SetOverNetwork(std::move(over_network));
  return absl::OkStatus();
}

// Sends this rank's board too, if the receiver can read it.
void Communicator::Greet(uint32_t rank) {
  if (!links_[rank].waiting.empty()) return;  // queue full: the greeting is repeated
  Outgoing greeting;
  greeting.to = group_.peer(rank);
  greeting.header = group_.Greeting();
  if (board_ != nullptr && transport_.SharesMemoryWith(greeting.to)) {
    greeting.payload = board_->own();
  }
  Send(std::move(greeting));
}

void Communicator::ReceiveGreeting(uint32_t rank, Message greeting) {
  links_[rank].met = true;
  if (board_ != nullptr && greeting.home == Home::kSender) {
    board_->Open(rank, std::move(greeting.payload));
  }
  if (rank > rank_) Greet(rank);
}

// 1. All ranks have all boards. A rank that learns this knows that all have called SetAsleep.
// 2. No board is a copy, as of memory that could not be shared: a copy stays asleep.
absl::Status Communicator::AgreeOnBoard() {
  if (world() == 1) return absl::OkStatus();
  board_->SetAsleep(false);
  ASSIGN_OR_RETURN(const bool complete, AllSay(board_->complete()));
  ASSIGN_OR_RETURN(const bool shared, AllSay(complete && board_->AllAwake()));
  if (shared) {
    group_.UseBoard(board_.get());
  } else {
    board_.reset();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Communicator::AllSay(bool yes) {
  const auto noes = std::make_shared<AlignedBuffer>(sizeof(float));
  noes->floats()[0] = yes ? 0.0f : 1.0f;
  RETURN_IF_ERROR(Run(RecursiveDoublingAllReduce(rank_, world()),
                      {noes, std::span(noes->data(), sizeof(float))}, ElementType::kFp32));
  return noes->floats()[0] == 0.0f;
}

absl::Status Communicator::Run(const CollectiveSchedule& schedule, CollectiveBuffer buffer,
                               ElementType type) {
  const absl::Time begun = time_.Now();
  ApplyAbort();
  if (begun >= next_tick_) {
    Poll(/*wait=*/false);  // board collectives may run for long without polling
    Tick(begun);
  }
  const absl::StatusOr<uint64_t> started = group_.Start(schedule, std::move(buffer), type, begun);
  if (!started.ok()) {
    if (!group_.status().ok()) Leave();
    return started.status();
  }
  const uint64_t number = *started;
  while (!group_.finished(number) || (waiting_messages_ > 0 && group_.status().ok())) {
    bool busy = true;
    for (int i = 0; i < kWorkBetweenPolls && busy; ++i) busy = group_.Work();
    if (group_.finished(number) && waiting_messages_ == 0) break;
    if (!busy && group_.watches_board() && WatchBoard()) continue;
    const absl::Time now = Wait(!busy && group_.ReadyToWait());
    if (now >= next_tick_) Tick(now);
    if (!group_.finished(number) || now - begun < patience_) continue;
    for (uint32_t rank = 0; rank < world(); ++rank) {
      if (!links_[rank].waiting.empty()) group_.Abort(rank, "accepts no messages");
    }
  }
  if (!group_.status().ok()) {
    Leave();
  } else if (unflushed_) {
    Poll(/*wait=*/false);
  }
  return group_.status();
}

bool Communicator::WatchBoard() {
  const auto look = [this] { return group_.HasBoardWork(); };
  // First check without a fence or the clock, in case the peers are as fast.
  if (SpinFor(time_, absl::InfinitePast(), absl::ZeroDuration(), look).has_value()) return true;
  group_.Nudge();
  return SpinFor(time_, time_.Now(), spin_, look).has_value();
}

// Once peers can see that this rank sleeps, they announce new posts with a message.
absl::Time Communicator::Wait(bool may_sleep) {
  if (!may_sleep || !group_.watches_board()) return Poll(may_sleep);
  board_->SetAsleep(true);
  const absl::Time now = Poll(/*wait=*/!group_.HasBoardWork());
  board_->SetAsleep(false);
  return now;
}

void Communicator::Leave() {
  const absl::Time deadline = time_.Now() + kLeaving;
  do {
    Poll(/*wait=*/false);
  } while (waiting_messages_ > 0 && time_.Now() < deadline);
}

absl::Time Communicator::Poll(bool wait) {
  Retry();
  absl::Duration timeout = wait ? RankGroup::kTick : absl::ZeroDuration();
  if (waiting_messages_ > 0) timeout = std::min(timeout, kRetry);
  unflushed_ = false;
  // One clock reading for all messages, taken while a short message is in flight. Messages that
  // arrive during the wait are dated up to one tick early, which no timeout notices.
  const absl::Time now = time_.Now();
  bool any = false;
  transport_.Poll(timeout, [&](Message message) {
    any = true;
    if (const std::optional<uint32_t> from = group_.GreetingFrom(message.header)) {
      return ReceiveGreeting(*from, std::move(message));
    }
    group_.OnMessage(std::move(message), now);
  });
  for (Link& link : links_) link.drained = link.drained || (!any && !link.lost.empty());
  return now;
}

// ---- sending ----

void Communicator::Send(Outgoing message) {
  const uint32_t rank = *group_.RankOf(message.to);
  Link& link = links_[rank];
  if (message.header.kind == MessageKind::kRankFailed) {  // supersedes all waiting messages
    waiting_messages_ -= link.waiting.size();
    link.waiting.clear();
  }
  if (link.waiting.empty() && TrySend(rank, message)) return;
  link.waiting.push_back(std::move(message));
  ++waiting_messages_;
}

bool Communicator::TrySend(uint32_t rank, const Outgoing& message) {
  Link& link = links_[rank];
  const absl::Status sent = transport_.Send(message);
  if (sent.ok()) {
    unflushed_ = unflushed_ || !link.shares_memory;
    return true;
  }
  if (absl::IsResourceExhausted(sent)) return false;
  SetLost(rank, absl::StrCat("disconnected: ", std::string(sent.message())));
  return true;
}

void Communicator::Retry() {
  if (waiting_messages_ == 0) return;
  for (uint32_t rank = 0; rank < world(); ++rank) {
    std::deque<Outgoing>& waiting = links_[rank].waiting;
    while (!waiting.empty() && TrySend(rank, waiting.front())) {
      waiting.pop_front();
      --waiting_messages_;
    }
  }
}

// ---- lost ranks ----

void Communicator::SetLost(uint32_t rank, std::string why) {
  Link& link = links_[rank];
  if (!link.lost.empty()) return;
  link.lost = std::move(why);
}

void Communicator::Tick(absl::Time now) {
  next_tick_ = now + RankGroup::kTick;
  for (uint32_t rank = 0; rank < world(); ++rank) {
    Link& link = links_[rank];
    const bool shares_memory = transport_.SharesMemoryWith(group_.peer(rank));
    if (link.shares_memory && !shares_memory)
      SetLost(rank, "closed its shared memory on this host");
    link.shares_memory = shares_memory;
    if (link.lost_for_good()) group_.OnLost(rank, link.lost);
  }
  ApplyAbort();
  group_.OnTick(now);
}

void Communicator::ApplyAbort() {
  if (!any_aborted_.load(std::memory_order_acquire)) return;
  std::optional<Aborted> aborted;
  {
    absl::MutexLock lock(&mutex_);
    aborted = aborted_;
  }
  if (aborted.has_value()) group_.Abort(aborted->rank, aborted->why);
}

void Communicator::Abort(uint32_t rank, const std::string& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.has_value()) aborted_ = Aborted{rank, why};
  }
  any_aborted_.store(true, std::memory_order_release);
  transport_.Wake();
}

}  // namespace tug
