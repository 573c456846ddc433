// SPDX-License-Identifier: Apache-2.0
#include "collective/rank_group.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace tug {
namespace {

// Delay of the first keep-alive (kInCollective): shorter collectives send none.
constexpr absl::Duration kFirstWord = absl::Milliseconds(10);
constexpr size_t kPlans = 64;
// Minimum bytes a step must send to a rank for words (port_order.h) to pay off: a word takes as
// long as a few thousand bytes; without it, two messages that meet at a port may take longer by the
// shorter one.
constexpr uint64_t kMinWordBytes = 16 << 10;
constexpr uint64_t kKeptBytes = 4 << 20;  // of each kind of buffer
constexpr size_t kMaxReasonBytes = 1024;

static_assert(MessageBoard::kByteLimit <= CollectiveRun::kCopiedBytes);

Lease TextLease(const std::string& text) {
  const auto owner = std::make_shared<const std::string>(text.substr(0, kMaxReasonBytes));
  return Lease(owner, std::as_bytes(std::span(owner->data(), owner->size())));
}

std::string TextOf(const Lease& lease) {
  const std::span<const std::byte> bytes =
      lease.bytes().first(std::min(lease.size_bytes(), kMaxReasonBytes));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Error code of a failure notice; UNAVAILABLE if it is not an error.
absl::StatusCode CodeOf(uint32_t number) {
  const bool is_error = number > static_cast<uint32_t>(absl::StatusCode::kOk) &&
                        number <= static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
  return is_error ? static_cast<absl::StatusCode>(number) : absl::StatusCode::kUnavailable;
}

}  // namespace

RankGroup::RankGroup(RankGroupOptions options, Sinks sinks)
    : options_(std::move(options)),
      between_words_(options_.timeout / 8),
      own_pauses_(options_.timeout / 4),
      sinks_(std::move(sinks)),
      over_network_(options_.peers.size()),
      copies_(kKeptBytes, nullptr),
      stage_(kKeptBytes, nullptr),
      early_(options_.early_bytes) {
  TUG_CHECK_LT(options_.rank, world());
  for (uint32_t rank = 0; rank < world(); ++rank) ranks_[options_.peers[rank]] = rank;
  TUG_CHECK_EQ(ranks_.size(), options_.peers.size());
}

std::optional<uint32_t> RankGroup::RankOf(PeerId peer) const {
  const auto found = ranks_.find(peer);
  if (found == ranks_.end()) return std::nullopt;
  return found->second;
}

// ---- starting ----

void RankGroup::SetOverNetwork(std::vector<bool> over_network) {
  TUG_CHECK_EQ(over_network.size(), options_.peers.size());
  over_network_ = std::move(over_network);
  plans_.clear();
}

absl::StatusOr<std::shared_ptr<const MessagePlan>> RankGroup::PlanOf(
    const CollectiveSchedule& schedule, uint64_t elements, ElementType type) {
  const uint64_t chunk = std::max<uint64_t>(1, options_.chunk_bytes / ElementBytes(type));
  const auto same = [&](const std::shared_ptr<const MessagePlan>& plan) {
    return plan->elements == elements && plan->chunk_elements == chunk &&
           plan->schedule == schedule;
  };
  auto found = std::find_if(plans_.begin(), plans_.end(), same);
  if (found == plans_.end()) {
    const MessageSizes sizes{.chunk_elements = chunk,
                             .word_elements = kMinWordBytes / ElementBytes(type)};
    ASSIGN_OR_RETURN(MessagePlan plan, PlanMessages(schedule, options_.rank, world(), elements,
                                                    sizes, over_network_));
    if (plans_.size() == kPlans) plans_.pop_back();
    plans_.push_back(std::make_shared<const MessagePlan>(std::move(plan)));
    found = plans_.end() - 1;
  }
  std::rotate(plans_.begin(), found, found + 1);
  return plans_.front();
}

RankGroup::Running& RankGroup::AddRun(uint64_t number) {
  if (spare_.empty()) return runs_[number];
  spare_.key() = number;
  return runs_.insert(std::move(spare_)).position->second;
}

void RankGroup::EndRun(Runs::iterator run) {
  Nudge();
  spare_ = runs_.extract(run);
  spare_.mapped().run.reset();
}

bool RankGroup::IsOver(const Running& running) const {
  return running.run->done() && !(running.on_board && board_->waiting() > 0);
}

absl::StatusOr<uint64_t> RankGroup::Start(const CollectiveSchedule& schedule,
                                          CollectiveBuffer buffer, ElementType type,
                                          absl::Time now) {
  RETURN_IF_ERROR(status_);
  if (buffer.bytes.size() % ElementBytes(type) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(buffer.bytes.size(),
                                                   " bytes are not a whole number of ",
                                                   ElementTypeName(type), " elements"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const MessagePlan> plan,
                   PlanOf(schedule, buffer.bytes.size() / ElementBytes(type), type));
  TUG_CHECK(board_ == nullptr || runs_.empty());
  const uint64_t number = next_++;
  const bool on_board = board_ != nullptr && buffer.bytes.size() <= MessageBoard::kByteLimit;
  CollectiveRun::Sinks sinks;
  sinks.send = [this, number](uint32_t rank, uint32_t message, uint64_t first, Lease payload) {
    SendElements(number, rank, message, first, std::move(payload));
  };
  sinks.say = [this, number](const PortWord& word) { SendPortWord(number, word); };
  sinks.wake = sinks_.wake;
  sinks.send_copies = on_board;
  Running& running = AddRun(number);
  running.on_board = on_board;
  // Dates the last message so that the first kInCollective is due after kFirstWord.
  const absl::Time told = now - between_words_ + std::min(kFirstWord, between_words_);
  running.times.assign(world(), {.elements = now, .told = told});
  running.run.emplace(std::move(plan), world(), std::move(buffer), type, std::move(sinks), copies_,
                      stage_);
  now_ = now;
  running.run->Begin();
  for (EarlyMessages::Early& early : early_.Take(number)) {
    if (status_.ok()) Deliver(early.rank, std::move(early.message), now);
  }
  const auto still = runs_.find(number);
  for (const auto& [rank, why] : lost_) {
    if (status_.ok() && Needs(still->second, rank)) Abort(rank, why);
  }
  RETURN_IF_ERROR(status_);
  if (IsOver(still->second)) EndRun(still);
  return number;
}

// ---- sending ----

WireHeader RankGroup::HeaderOf(MessageKind kind) const {
  WireHeader header;
  header.kind = kind;
  header.job = options_.job;
  header.timeline = options_.group;
  return header;
}

WireHeader RankGroup::Greeting() const {
  WireHeader header = HeaderOf(MessageKind::kInCollective);
  WriteCollectiveHeader({.number = kNoCollective}, header);
  return header;
}

std::optional<uint32_t> RankGroup::GreetingFrom(const WireHeader& header) const {
  if (header.kind != MessageKind::kInCollective || CollectiveOf(header) != kNoCollective ||
      header.job != options_.job || header.timeline != options_.group) {
    return std::nullopt;
  }
  const std::optional<uint32_t> rank = RankOf(header.sender);
  return rank == options_.rank ? std::nullopt : rank;
}

CollectiveHeader RankGroup::OwnHeader(uint64_t number, uint32_t rank,
                                      const CollectiveRun& run) const {
  const CollectiveSchedule& schedule = run.plan().schedule;
  return {.number = number,
          .shape = {.elements = run.plan().elements,
                    .type = static_cast<uint32_t>(run.type()),
                    .parts = schedule.parts,
                    .steps = static_cast<uint32_t>(schedule.steps.size())},
          .over_network = over_network_[rank]};
}

Outgoing RankGroup::MessageTo(MessageKind kind, uint32_t rank, const CollectiveHeader& says) {
  PeerTimes& times = runs_.find(says.number)->second.times[rank];
  times.told = std::max(times.told, now_);
  WireHeader header = HeaderOf(kind);
  WriteCollectiveHeader(says, header);
  return {options_.peers[rank], header, Lease()};
}

void RankGroup::SendElements(uint64_t number, uint32_t rank, uint32_t message,
                             uint64_t first_element, Lease payload) {
  const Running& running = runs_.find(number)->second;
  CollectiveHeader says = OwnHeader(number, rank, *running.run);
  says.message = message;
  says.first_element = first_element;
  Outgoing outgoing = MessageTo(MessageKind::kElements, rank, says);
  if (running.on_board) {
    return board_->Post(rank, outgoing.header, payload.bytes());
  }
  outgoing.payload = std::move(payload);
  sinks_.send(std::move(outgoing));
}

void RankGroup::SendPortWord(uint64_t number, const PortWord& word) {
  CollectiveHeader says = OwnHeader(number, word.peer, *runs_.find(number)->second.run);
  says.message = word.number;
  says.received = word.received;
  sinks_.send(MessageTo(MessageKind::kClearToSend, word.peer, says));
}

void RankGroup::SendInCollective(uint64_t number, uint32_t rank) {
  const CollectiveHeader says = OwnHeader(number, rank, *runs_.find(number)->second.run);
  sinks_.send(MessageTo(MessageKind::kInCollective, rank, says));
}

// ---- receiving ----

void RankGroup::OnMessage(Message message, absl::Time now) {
  now_ = now;
  const WireHeader& header = message.header;
  const std::optional<uint32_t> rank = RankOf(header.sender);
  if (!rank.has_value() || *rank == options_.rank || header.job != options_.job ||
      header.timeline != options_.group || !status_.ok()) {
    ++ignored_messages_;
    return;
  }
  switch (header.kind) {
    case MessageKind::kRankFailed:
      return OnRankFailed(*rank, message);
    case MessageKind::kElements:
    case MessageKind::kInCollective:
    case MessageKind::kClearToSend:
      if (CollectiveOf(header) == kNoCollective) return;
      if (CollectiveOf(header) >= next_) return KeepEarly(*rank, std::move(message));
      return Deliver(*rank, std::move(message), now);
    default:
      ++ignored_messages_;
  }
}

void RankGroup::KeepEarly(uint32_t rank, Message message) {
  const uint64_t number = CollectiveOf(message.header);
  const std::string bound = early_.Keep(rank, next_, std::move(message));
  if (bound.empty()) return;
  Fail(absl::StatusCode::kResourceExhausted, options_.rank,
       absl::StrCat("is too slow: rank ", rank, " is too far ahead; it sends for collective ",
                    number, " while ", next_, " are started here, and ", bound,
                    " would be buffered"));
}

void RankGroup::Deliver(uint32_t rank, Message message, absl::Time now) {
  const MessageKind kind = message.header.kind;
  const CollectiveHeader says = ReadCollectiveHeader(message.header);
  const auto found = runs_.find(says.number);
  if (found == runs_.end()) {  // a repeat, or an unneeded keep-alive
    ++ignored_messages_;
    return;
  }
  CollectiveRun& run = *found->second.run;
  if (!Agrees(run, rank, says)) return;
  found->second.times[rank].heard = now;
  if (kind == MessageKind::kInCollective) return;
  found->second.times[rank].elements = now;
  const absl::Status taken =
      kind == MessageKind::kClearToSend
          ? run.OnPortWord({rank, says.message, says.received})
          : run.OnElements(rank, says.message, says.first_element, std::move(message));
  if (taken.ok()) return;
  Fail(absl::StatusCode::kInvalidArgument, rank,
       absl::StrCat(std::string(taken.message()), " (rank ", options_.rank, ") in collective ",
                    says.number, ": all ranks must call the same algorithm with the same chunks"));
}

bool RankGroup::Agrees(const CollectiveRun& run, uint32_t rank, const CollectiveHeader& says) {
  const CollectiveHeader own = OwnHeader(says.number, rank, run);
  if (says.shape != own.shape) {
    Fail(absl::StatusCode::kInvalidArgument, rank,
         absl::StrCat("has ", CollectiveText(says.shape), " in collective ", says.number, ", rank ",
                      options_.rank, " has ", CollectiveText(own.shape),
                      ": all ranks must call the same algorithm with the same size and type"));
  }
  if (says.over_network != own.over_network) {  // a word would be awaited and never sent
    Fail(
        absl::StatusCode::kInvalidArgument, rank,
        absl::StrCat("reaches rank ", options_.rank, " over the ",
                     says.over_network ? "network" : "host's memory",
                     ", which reaches it over the ", own.over_network ? "network" : "host's memory",
                     ": one of them could not open its end, perhaps for lack of open files or "
                     "memory; raise `ulimit -v`, or set comm.shared_memory to false"));
  }
  return status_.ok();
}

bool RankGroup::Work() {
  for (auto it = runs_.begin(); it != runs_.end(); ++it) {
    Running& running = it->second;
    bool any = running.on_board && (board_->Flush() || TakeFromBoard(it->first, running));
    if (!status_.ok()) return true;
    any = running.run->Work() || any;
    if (!any) continue;
    if (IsOver(running)) {
      ReportReads(it->first, *running.run);
      EndRun(it);
    }
    return true;
  }
  for (auto& [number, running] : runs_) ReportReads(number, *running.run);
  return false;
}

void RankGroup::ReportReads(uint64_t number, CollectiveRun& run) {
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (run.TakeReadInPlace(rank)) SendInCollective(number, rank);
  }
}

bool RankGroup::ReadyToWait() {
  for (auto& [number, running] : runs_) {
    if (running.run->waits_for_reads() && running.run->WantReads()) return false;
  }
  return true;
}

// ---- lost ranks ----

void RankGroup::OnTick(absl::Time now) {
  now_ = now;
  if (const absl::Duration pause = own_pauses_.Pass(now); pause > absl::ZeroDuration()) {
    for (auto& [number, running] : runs_) {
      for (PeerTimes& times : running.times) {
        times.elements = std::min(now, times.elements + pause);
        if (times.heard != absl::InfinitePast()) times.heard = now;
      }
    }
  }
  for (uint32_t rank = 0; rank < world(); ++rank) {
    for (auto& [number, running] : runs_) {
      CheckPeer(number, running, rank, now);
      if (!status_.ok()) return;
    }
  }
}

void RankGroup::CheckPeer(uint64_t number, Running& running, uint32_t rank, absl::Time now) {
  const PeerTimes& times = running.times[rank];
  if (running.run->owes(rank) && now - times.told >= between_words_) {
    SendInCollective(number, rank);
  }
  if (board_ != nullptr && rank != options_.rank) {
    CheckPosted(number, running, rank, now);
    if (!status_.ok()) return;
  }
  if (!Awaits(running, rank)) return;
  const absl::Duration silent = now - times.heard;
  if (times.heard != absl::InfinitePast() && silent >= options_.timeout * 3 / 4) {
    return Fail(absl::StatusCode::kUnavailable, rank,
                absl::StrCat("sent no message for ", absl::FormatDuration(silent),
                             " during collective ", number));
  }
  const bool has_come = times.heard != absl::InfinitePast();
  const absl::Duration patience = has_come ? 2 * options_.patience : options_.patience;
  if (now - times.elements < patience) return;
  Fail(
      absl::StatusCode::kUnavailable, rank,
      absl::StrCat(has_come ? "has sent no elements of collective " : "has not entered collective ",
                   number, " for ", absl::FormatDuration(patience)));
}

void RankGroup::OnRankFailed(uint32_t from, const Message& message) {
  const auto [rank, code] = ReadRankFailure(message.header);
  const std::string why = TextOf(message.payload);
  if (rank >= world()) {
    ++ignored_messages_;
    return;
  }
  Fail(CodeOf(code), rank, why, absl::StrCat(" (rank ", from, " says)"));
}

void RankGroup::OnLost(uint32_t rank, const std::string& why) {
  TUG_CHECK_LT(rank, world());
  lost_.emplace(rank, why);
  const auto needed = [&](const auto& entry) { return Needs(entry.second, rank); };
  if (std::any_of(runs_.begin(), runs_.end(), needed)) Abort(rank, why);
}

void RankGroup::Abort(uint32_t rank, const std::string& why, absl::StatusCode code) {
  TUG_CHECK_LT(rank, world());
  Fail(code, rank, why);
}

void RankGroup::Fail(absl::StatusCode code, uint32_t rank, const std::string& why,
                     const std::string& says) {
  if (!status_.ok()) return;
  failed_rank_ = rank;
  status_ = absl::Status(code, absl::StrCat("rank ", rank, " (", Name(rank), ") ", why, says));
  runs_.clear();
  early_.Clear();
  for (uint32_t other = 0; other < world(); ++other) {
    if (other == options_.rank) continue;
    Outgoing notice;
    notice.to = options_.peers[other];
    notice.header = HeaderOf(MessageKind::kRankFailed);
    WriteRankFailure({.rank = rank, .code = static_cast<uint32_t>(code)}, notice.header);
    notice.payload = TextLease(why);
    sinks_.send(std::move(notice));
  }
}

}  // namespace tug
