// SPDX-License-Identifier: Apache-2.0
#include "server/shard/pull_service.h"

#include <algorithm>
#include <utility>

#include "base/elapsed.h"
#include "blocks/runs.h"
#include "blocks/view_lanes.h"
#include "blocks/weights_payload.h"

namespace tug {
namespace {

AnswerQueue::Options AnswerOptions(const ShardOptions& options, uint64_t lanes) {
  return {.scheduler = options.scheduler,
          .credit_bytes = options.pull_credit_bytes / lanes,
          // One virtual worker per worker at least; twice, as for MostOpen.
          .max_workers =
              size_t{2} * options.virtual_workers + (options.cached_lanes.has_value() ? lanes : 0),
          .lost_after = options.resend_after};
}

WeightCache::Options CacheOptions(const ShardOptions& options) {
  return {.job = options.job,
          .timeline = options.timeline,
          .view = options.view,
          .lane_of_segment = options.lane_of_segment,
          .lanes = *options.cached_lanes,
          .codec = WeightsCodecOf(options.pull_format),
          .resend_first = FirstResend(options),
          .resend_after = options.resend_after,
          .new_buffer = options.new_buffer};
}

}  // namespace

PullService::PullService(ShardContext& context, OwnSegments& own)
    : context_(context),
      own_(own),
      waiting_(context.table.size(), context.table.num_blocks()),
      lanes_(OwningLanes(context.options)),
      answers_(AnswerOptions(context.options, lanes_)) {
  const ShardOptions& options = context.options;
  if (options.cached_lanes.has_value()) {
    cache_.emplace(CacheOptions(options), context.table, context.sinks.send);
  }
  const bool compensates = options.sync.delay_compensation() > 0;
  if (own.own_clocks() && (compensates || context.sinks.record)) {
    served_.emplace(ServedWeights::Options{.keep_weights = compensates,
                                           // One per worker at least.
                                           .max_workers = options.virtual_workers},
                    context.table);
  }
}

// ---- arriving pulls ----

PullWish PullService::WishOf(const WireHeader& pull) const {
  return {.clock = pull.clock,
          .exact = pull.want == Want::kExact,
          .virtual_worker = pull.virtual_worker,
          .virtual_worker_count = pull.virtual_worker_count,
          .final_clocks = context_.final_clocks};
}

std::optional<uint32_t> PullService::NotReady(const WireHeader& pull) const {
  const uint32_t first = context_.FirstId(pull);
  if (IsElsewhere(pull))
    return cache_->Find(pull).has_value() ? std::nullopt : std::optional(first);
  const PullWish wish = WishOf(pull);
  for (uint32_t id = first; id < first + pull.segment_count; ++id) {
    if (!context_.policy->Serves(wish, own_.ClocksOf(id))) return id;
  }
  return std::nullopt;
}

bool PullService::IsPull(const Message& message) const {
  const WireHeader& header = message.header;
  if (!context_.RangeExists(header) || !MayPull(header.sender)) return false;
  if (IsElsewhere(header)) {
    return cache_.has_value() && IsWorker(header.sender) && cache_->CanAnswer(header) &&
           message.payload.size_bytes() == 0;
  }
  if (!own_.HasRange(header)) return false;
  if (!context_.policy->MakesSense(WishOf(header), context_.options.virtual_workers)) return false;
  if (header.codec == Codec::kFrames) return false;  // for pushes only
  if (header.codec != Codec::kRuns) return message.payload.size_bytes() == 0;
  return DecodeRuns(message.payload.bytes(), context_.RangeElements(header), /*with_values=*/false)
      .has_value();
}

// Versions of two segments differ by at most one, so a pull of another lane's segment may ask for
// up to two versions beyond this lane's own. A lane without segments cannot tell.
bool PullService::MayWait(const WireHeader& pull) const {
  if (waiting_.in_block(pull.block) >= context_.MostOpen(pull.block)) return false;
  if (IsElsewhere(pull)) {
    return own_.ids().empty() || pull.clock <= own_.state(own_.ids().front()).version + 2;
  }
  return context_.policy->MayWait(WishOf(pull), own_.ClocksOf(context_.FirstId(pull)));
}

void PullService::MakeRoomFor(const WireHeader& pull) {
  const uint32_t first = context_.FirstId(pull);
  const uint32_t segments = context_.table.segments_in_block(pull.block);
  if (context_.policy->exact_for_any_clock() && pull.want == Want::kExact) {
    waiting_.ForgetExact(pull, first, first - pull.first_segment + segments);
  }
  if (IsElsewhere(pull)) {  // a sender has one open pull per block
    waiting_.ForgetExact(pull, first, first + 1);
  }
}

void PullService::OnPull(const Message& message) {
  const WireHeader& header = message.header;
  if (!IsPull(message)) {
    return context_.Malformed(header, "is not a valid pull from this lane");
  }
  const std::optional<uint32_t> segment = NotReady(header);
  if (!answers_.Admit(header.sender)) {
    return context_.Malformed(header, "comes from more workers than the job can have");
  }
  if (!segment.has_value()) return OnReady({header, message.payload});
  if (waiting_.Contains(header, *segment)) {
    ++context_.counters.repeats;
    if (IsElsewhere(header)) cache_->Ask(header, context_.now);
    return;
  }
  MakeRoomFor(header);
  if (!MayWait(header)) {
    return context_.Malformed(header, "pulls a version that no worker can need yet");
  }
  waiting_.Add({header, message.payload}, *segment);
  if (IsElsewhere(header)) cache_->Ask(header, context_.now);
}

void PullService::LookAgain(WaitingPull pull) {
  const std::optional<uint32_t> next = NotReady(pull.header);
  if (!next.has_value()) return OnReady(std::move(pull));
  waiting_.Add(std::move(pull), *next);
}

void PullService::LookAgain(uint32_t segment) {
  LookAgain(segment, [](const WireHeader&) { return true; });
}

void PullService::LookAgainAtAll() {
  for (const uint32_t id : own_.ids()) LookAgain(id);
}

// ---- answers to the cache ----

void PullService::OnAnswerToCache(const Message& message) {
  const WireHeader& header = message.header;
  if (!cache_.has_value() || IsWorker(header.sender)) {
    return context_.Malformed(header, "replies to a pull that this lane did not send");
  }
  if (header.kind == MessageKind::kRefused) {
    if (!context_.RangeExists(header)) {
      return context_.Malformed(header, "refuses segments that do not exist");
    }
    cache_->OnRefused(header, context_.now);
  } else {
    if (!cache_->OnWeights(message)) return;
    LookAgain(context_.FirstId(header));
  }
  RefuseGivenUp(header.block, header.version);
}

void PullService::RefuseGivenUp(uint32_t block, uint64_t version) {
  const uint32_t first = context_.table.id(block, 0);
  for (uint32_t id = first; id < first + context_.table.segments_in_block(block); ++id) {
    waiting_.TakeEach(
        id,
        [&](const WaitingPull& pull) {
          context_.Reply(MessageKind::kRefused, pull.header, version);
        },
        [&](const WireHeader& pull) { return IsElsewhere(pull) && !cache_->Knows(pull); });
  }
}

void PullService::OnFenced(const WireHeader& header) {
  if (cache_.has_value()) cache_->OnFenced(header, context_.now);
}

// ---- answers ----

Codec PullService::AnswerCodec(const WireHeader& pull) const {
  if (pull.codec != Codec::kChanges) return pull.codec;
  const bool follows =
      pull.want == Want::kExact && pull.version != kNoVersion && pull.version + 1 == pull.clock &&
      own_.weights().ChangesBytes(context_.FirstId(pull), pull.segment_count, pull.clock);
  return follows ? Codec::kChanges : Codec::kNone;
}

uint64_t PullService::AnswerBytes(const WaitingPull& pull) const {
  const WireHeader& header = pull.header;
  const uint32_t first = context_.FirstId(header);
  const Codec codec = AnswerCodec(header);
  if (codec == Codec::kChanges) {
    return *own_.weights().ChangesBytes(first, header.segment_count, header.clock);
  }
  if (codec != Codec::kRuns) {
    return WeightsBytes(codec, context_.table, first, header.segment_count);
  }
  const std::optional<EncodedRuns> list =
      DecodeRuns(pull.payload.bytes(), context_.RangeElements(header), /*with_values=*/false);
  // Valid when it arrived; if its sender has changed it since, there will be no answer.
  return list.has_value() ? EncodedBytes(list->runs, /*with_values=*/true) : 0;
}

void PullService::OnReady(WaitingPull pull) {
  const PeerId worker = pull.header.sender;
  // An answer in place is free; copies are bounded by the worker's credit.
  const bool copies = own_.weights().one_copy() || AnswerCodec(pull.header) == Codec::kChanges;
  if (!copies && context_.sinks.shares_memory && context_.sinks.shares_memory(worker)) {
    Answer(pull, 0);
    return;
  }
  const uint32_t first = context_.FirstId(pull.header);
  const uint64_t bytes = AnswerBytes(pull);
  if (!answers_.Add(std::move(pull), first, bytes)) ++context_.counters.repeats;
  SendAnswers(worker);
}

void PullService::OnWeightsReceived(const Message& message) {
  const WireHeader& header = message.header;
  if (!MayPull(header.sender) || message.payload.size_bytes() > 0) {
    return context_.Malformed(
        header, "acknowledges weights, but its sender cannot pull or it has a payload");
  }
  // The answer may have been given up as lost: no credit to return.
  if (!answers_.Received(header.sender, header.ack_id)) return;
  SendAnswers(header.sender);
}

void PullService::SendAnswers(PeerId worker) {
  while (const std::optional<AnswerQueue::Turn> turn = answers_.Next(worker, context_.now)) {
    if (!Answer(turn->pull, turn->number)) answers_.Received(worker, turn->number);
  }
  context_.counters.peak_answer_bytes = answers_.most_outstanding_bytes();
}

void PullService::SendFreed() {
  for (const PeerId worker : freed_) SendAnswers(worker);
  freed_.clear();
}

void PullService::OnTick() {
  answers_.OnTick(context_.now, freed_);
  SendFreed();
  if (cache_.has_value()) cache_->OnTick(context_.now);
}

void PullService::EnterView() {
  waiting_.Clear();
  if (cache_.has_value()) cache_->SetView(context_.view);
  if (served_.has_value()) served_->Clear();
}

void PullService::SetCredit(uint64_t pull_credit_bytes) {
  answers_.SetCredit(pull_credit_bytes / lanes_);
  answers_.ListWorkers(freed_);
  SendFreed();
}

bool PullService::Answer(const WaitingPull& pull, uint64_t number) {
  const ElapsedSeconds elapsed(context_.options.work_time, context_.counters.serve_seconds);
  return IsElsewhere(pull.header) ? AnswerFromCache(pull.header, number)
                                  : AnswerFromOwn(pull, number);
}

bool PullService::AnswerFromOwn(const WaitingPull& waiting, uint64_t number) {
  const WireHeader& pull = waiting.header;
  const uint32_t first = context_.FirstId(pull);
  const uint64_t oldest = own_.OldestVersion(first, pull.segment_count);
  const PullWish wish = WishOf(pull);
  const uint64_t served = context_.policy->VersionServed(wish, oldest);
  TraceEvent event = context_.EventOf(TraceKind::kServe, pull);
  event.clock = context_.policy->ClockServed(wish, served);
  event.bytes = 0;
  const TraceSpan span(context_.options.trace, event);
  const Codec codec = AnswerCodec(pull);
  const bool newest = own_.NewestVersion(first, pull.segment_count) == served;
  std::optional<Lease> weights = own_.weights().Read(first, pull.segment_count, served, newest,
                                                     codec, waiting.payload.bytes());
  if (!weights.has_value()) {
    context_.Reply(MessageKind::kRefused, pull, oldest);
    return false;
  }
  if (served_.has_value()) NoteServed(pull, oldest);
  SendWeights(pull, codec, served, number, *std::move(weights));
  return true;
}

void PullService::NoteServed(const WireHeader& pull, uint64_t oldest) {
  const uint32_t first = context_.FirstId(pull);
  const bool mixed = own_.NewestVersion(first, pull.segment_count) != oldest;
  for (uint32_t id = first; id < first + pull.segment_count; ++id) {
    const uint64_t version = own_.state(id).version;
    served_->Note(pull, id, version, mixed, own_.weights().weights(id, version));
  }
}

// The weights may have been dropped while the pull was queued: then its sender asks again.
bool PullService::AnswerFromCache(const WireHeader& pull, uint64_t number) {
  TraceEvent event = context_.EventOf(TraceKind::kServe, pull);
  event.clock = pull.clock - 1;
  event.bytes = 0;
  const TraceSpan span(context_.options.trace, event);
  std::optional<Lease> weights = cache_->Find(pull);
  if (!weights.has_value()) {
    context_.Reply(MessageKind::kRefused, pull, pull.clock);
    return false;
  }
  SendWeights(pull, pull.codec, pull.clock, number, *std::move(weights));
  return true;
}

void PullService::SendWeights(const WireHeader& pull, Codec codec, uint64_t version,
                              uint64_t number, Lease weights) {
  WireHeader header = pull;  // the other fields identify the pull for its sender
  header.kind = MessageKind::kWeights;
  header.codec = codec;
  header.view = context_.view;  // the view may have changed while it was queued
  header.version = version;
  header.ack_id = number;
  context_.sinks.send({pull.sender, header, std::move(weights)});
}

}  // namespace tug
