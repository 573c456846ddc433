// Pulls of a lane: those that wait for their version, those that wait for their turn, answers.
#include <algorithm>
#include <utility>

#include "base/elapsed.h"
#include "exchange/runs.h"
#include "exchange/weights_payload.h"
#include "server/shard.h"

namespace tug {

std::optional<uint32_t> Shard::NotReady(const WireHeader& pull) const {
  if (IsElsewhere(pull)) {
    return cache_->Find(pull).has_value() ? std::nullopt : std::optional(FirstId(pull));
  }
  const PullWish wish{.clock = pull.version,
                      .exact = pull.want == Want::kExact,
                      .virtual_worker = pull.virtual_worker,
                      .virtual_worker_count = pull.virtual_worker_count,
                      .final_clocks = final_clocks_};
  const uint32_t first = FirstId(pull);
  for (uint32_t id = first; id < first + pull.segment_count; ++id) {
    if (!policy_->Serves(wish, ClocksOf(*states_[id]))) return id;
  }
  return std::nullopt;
}

bool Shard::IsPull(const Message& message) const {
  const WireHeader& header = message.header;
  if (!RangeExists(header) || !MayPull(header.sender)) return false;
  if (IsElsewhere(header)) {
    return cache_.has_value() && IsWorker(header.sender) && cache_->CanAnswer(header) &&
           message.payload.size_bytes() == 0;
  }
  if (!RangeIsOwn(header)) return false;
  // Whose they are is read only where virtual workers have clocks of their own.
  if (update_per_push_ &&
      (header.virtual_worker >= options_.virtual_workers || header.virtual_worker_count == 0 ||
       header.virtual_worker_count > options_.virtual_workers - header.virtual_worker)) {
    return false;
  }
  if (header.codec == Codec::kFrames) return false;  // of pushes only
  if (header.codec != Codec::kRuns) return message.payload.size_bytes() == 0;
  return DecodeRuns(message.payload.bytes(), RangeElements(header), /*with_values=*/false)
      .has_value();
}

// Whether a pull may wait: the clock that it wants to begin is the next after one that has been
// begun. (Where every push is an update, one of the evaluation at the end may be for any: of those
// a sender has one.) Versions of two segments differ by one at most, so one of another lane may be
// asked for the second after that of this lane's; a lane that owns none cannot tell.
bool Shard::MayWait(const WireHeader& pull) const {
  if (waiting_pulls_.in_block(pull.block) >= MaxOpen(pull.block)) return false;
  if (IsElsewhere(pull)) {
    return owned_.empty() || pull.version <= states_[owned_.front()]->version + 2;
  }
  const SegmentState& state = *states_[FirstId(pull)];
  if (!update_per_push_) return pull.version <= state.version + 1;
  if (pull.want == Want::kExact) return true;
  return pull.version <= state.next->next(pull.virtual_worker) + 1;
}

void Shard::OnPull(const Message& message) {
  const WireHeader& header = message.header;
  if (!IsPull(message)) return Malformed(header, "is a pull of what this lane does not own");
  const std::optional<uint32_t> segment = NotReady(header);
  if (!answers_.Admit(header.sender)) {
    return Malformed(header, "is of one worker more than the job can have");
  }
  if (!segment.has_value()) return OnReady({header, message.payload});
  if (waiting_pulls_.Contains(header, *segment)) {
    ++counters_.repeats;
    if (IsElsewhere(header)) cache_->Ask(header, now_);
    return;
  }
  if (update_per_push_ && header.want == Want::kExact) {
    const uint32_t first = FirstId(header);
    const uint32_t segments = table_.segments_in_block(header.block);
    waiting_pulls_.ForgetExact(header, first, first - header.first_segment + segments);
  }
  if (IsElsewhere(header)) {  // a sender has one pull of a block open
    const uint32_t first = FirstId(header);
    waiting_pulls_.ForgetExact(header, first, first + 1);
  }
  if (!MayWait(header)) {
    return Malformed(header, "is a pull of a version that nobody can need yet");
  }
  waiting_pulls_.Add({header, message.payload}, *segment);
  if (IsElsewhere(header)) cache_->Ask(header, now_);
}

void Shard::OnAnswerToCache(const Message& message) {
  const WireHeader& header = message.header;
  if (!cache_.has_value() || IsWorker(header.sender)) return Malformed(header, "is not for a lane");
  if (header.kind == MessageKind::kRefused) {
    if (!RangeExists(header)) return Malformed(header, "refuses what there is not");
    cache_->OnRefused(header, now_);
  } else {
    if (!cache_->OnWeights(message)) return;
    waiting_pulls_.TakeEach(FirstId(header),
                            [this](WaitingPull pull) { LookAgain(std::move(pull)); });
  }
  RefuseGivenUp(header.block, header.version);
}

void Shard::RefuseGivenUp(uint32_t block, uint64_t version) {
  const uint32_t first = table_.id(block, 0);
  for (uint32_t id = first; id < first + table_.segments_in_block(block); ++id) {
    waiting_pulls_.TakeEach(
        id, [&](const WaitingPull& pull) { Reply(MessageKind::kRefused, pull.header, version); },
        [&](const WireHeader& pull) { return IsElsewhere(pull) && !cache_->Knows(pull); });
  }
}

void Shard::LookAgain(WaitingPull pull) {
  const std::optional<uint32_t> next = NotReady(pull.header);
  if (!next.has_value()) return OnReady(std::move(pull));
  waiting_pulls_.Add(std::move(pull), *next);
}

Codec Shard::AnswerCodec(const WireHeader& pull) const {
  if (pull.codec != Codec::kChanges) return pull.codec;
  const bool follows = pull.want == Want::kExact && pull.clock == pull.version &&
                       weights_.ChangesBytes(FirstId(pull), pull.segment_count, pull.version);
  return follows ? Codec::kChanges : Codec::kNone;
}

uint64_t Shard::AnswerBytes(const WaitingPull& pull) const {
  const WireHeader& header = pull.header;
  const Codec codec = AnswerCodec(header);
  if (codec == Codec::kChanges) {
    return *weights_.ChangesBytes(FirstId(header), header.segment_count, header.version);
  }
  if (codec != Codec::kRuns) {
    return WeightsBytes(codec, table_, FirstId(header), header.segment_count);
  }
  const std::optional<EncodedRuns> list =
      DecodeRuns(pull.payload.bytes(), RangeElements(header), /*with_values=*/false);
  // Looked at when it came; if its sender has changed it since, there will be no answer.
  return list.has_value() ? EncodedBytes(list->runs, /*with_values=*/true) : 0;
}

void Shard::OnReady(WaitingPull pull) {
  const PeerId worker = pull.header.sender;
  // An answer in place costs nothing; copies are bounded by the worker's credit.
  const bool copies = update_per_push_ || AnswerCodec(pull.header) == Codec::kChanges;
  if (!copies && sinks_.shares_memory && sinks_.shares_memory(worker)) {
    Answer(pull, 0);
    return;
  }
  const uint32_t first = FirstId(pull.header);
  const uint64_t bytes = AnswerBytes(pull);
  if (!answers_.Add(std::move(pull), first, bytes)) ++counters_.repeats;
  SendAnswers(worker);
}

void Shard::OnWeightsReceived(const Message& message) {
  const WireHeader& header = message.header;
  if (!MayPull(header.sender) || message.payload.size_bytes() > 0) {
    return Malformed(header, "is word of weights that a worker does not send so");
  }
  // Of an answer that was given up as lost: nothing is left to return.
  if (!answers_.Received(header.sender, header.clock)) return;
  SendAnswers(header.sender);
}

void Shard::SendAnswers(PeerId worker) {
  while (const std::optional<AnswerQueue::Turn> turn = answers_.Next(worker, now_)) {
    if (!Answer(turn->pull, turn->number)) answers_.Received(worker, turn->number);
  }
  counters_.most_answer_bytes = answers_.most_outstanding_bytes();
}

bool Shard::Answer(const WaitingPull& waiting, uint64_t number) {
  const WireHeader& pull = waiting.header;
  if (IsElsewhere(pull)) return AnswerFromCache(pull, number);
  const uint32_t first = FirstId(pull);
  uint64_t oldest = states_[first]->version;
  uint64_t newest = oldest;
  for (uint32_t id = first + 1; id < first + pull.segment_count; ++id) {
    oldest = std::min(oldest, states_[id]->version);
    newest = std::max(newest, states_[id]->version);
  }
  const bool exactly = pull.want == Want::kExact && !update_per_push_;
  const uint64_t served = exactly ? pull.version : oldest;
  TraceEvent event = EventOf(TraceKind::kServe, pull);
  // The clock that made it; of version 0: none that there is.
  event.clock = (update_per_push_ ? pull.version : served) - 1;
  event.bytes = 0;
  const TraceSpan span(options_.trace, event);
  const ElapsedSeconds elapsed(options_.work_time, counters_.serve_seconds);
  const Codec codec = AnswerCodec(pull);
  std::optional<Lease> weights = weights_.Read(first, pull.segment_count, served, newest == served,
                                               codec, waiting.payload.bytes());
  if (!weights.has_value()) {
    Reply(MessageKind::kRefused, pull, oldest);
    return false;
  }
  if (served_.has_value()) {
    for (uint32_t id = first; id < first + pull.segment_count; ++id) {
      served_->Note(pull, id, states_[id]->version, oldest != newest,
                    weights_.weights(id, states_[id]->version));
    }
  }
  SendWeights(pull, codec, served, number, *std::move(weights));
  return true;
}

// It may have been forgotten while it waited for its turn: then its sender asks again.
bool Shard::AnswerFromCache(const WireHeader& pull, uint64_t number) {
  TraceEvent event = EventOf(TraceKind::kServe, pull);
  event.clock = pull.version - 1;
  event.bytes = 0;
  const TraceSpan span(options_.trace, event);
  const ElapsedSeconds elapsed(options_.work_time, counters_.serve_seconds);
  std::optional<Lease> weights = cache_->Find(pull);
  if (!weights.has_value()) {
    Reply(MessageKind::kRefused, pull, pull.version);
    return false;
  }
  SendWeights(pull, pull.codec, pull.version, number, *std::move(weights));
  return true;
}

void Shard::SendWeights(const WireHeader& pull, Codec codec, uint64_t version, uint64_t number,
                        Lease weights) {
  WireHeader header = pull;  // its sender knows by the rest of it which pull this answers
  header.kind = MessageKind::kWeights;
  header.codec = codec;
  header.view = view_;  // it may have waited for its turn since another one
  header.version = version;
  header.clock = number;
  sinks_.send({pull.sender, header, std::move(weights)});
}

}  // namespace tug
