#include "server/shard.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "exchange/runs.h"

// Pulls: shard_pulls.cc. Closing, norms and snapshots: shard_closing.cc.

namespace tug {
namespace {

std::vector<uint32_t> OwnedSegments(const ShardOptions& options) {
  std::vector<uint32_t> owned;
  for (uint32_t id = 0; id < options.lane_of_segment.size(); ++id) {
    if (options.lane_of_segment[id] == options.lane) owned.push_back(id);
  }
  return owned;
}

// What sums use at most, but for exempt pushes (push_admission.h): more is not kept spare.
uint64_t SumBytes(const ShardOptions& options, const SegmentTable& table,
                  std::span<const uint32_t> owned) {
  uint64_t bytes = options.parking_bytes;
  for (uint32_t id : owned) bytes += table.segment(id).bytes();
  return bytes;
}

SegmentStates MakeStates(const ShardOptions& options, const SegmentTable& table,
                         std::span<const uint32_t> owned, BufferPool& pool) {
  SegmentStates states(table.size());
  for (uint32_t id : owned) {
    states[id] = std::make_unique<SegmentState>(options.start_version, options.virtual_workers,
                                                table.segment(id).elements(), pool);
  }
  return states;
}

PushAdmission::Options AdmissionOptions(const ShardOptions& options, size_t owned) {
  return {.parking_bytes = options.parking_bytes,
          .start_clock = options.start_version,
          .most_deferred = size_t{2} * options.virtual_workers * owned,
          .repeat_after = options.resend_after};
}

uint64_t CountLanes(const ShardOptions& options) {
  std::vector<uint32_t> lanes = options.lane_of_segment;
  std::sort(lanes.begin(), lanes.end());
  return static_cast<uint64_t>(std::unique(lanes.begin(), lanes.end()) - lanes.begin());
}

AnswerQueue::Options AnswerOptions(const ShardOptions& options, uint64_t lanes) {
  return {.scheduler = options.scheduler,
          .credit_bytes = options.pull_credit_bytes / lanes,
          // A worker carries one virtual worker at least; twice, as for MaxOpen.
          .most_workers = size_t{2} * options.virtual_workers,
          .lost_after = options.resend_after};
}

// A push of runs as the push of all elements that it stands for. None if its sender has changed it
// since it was looked at: it may lie in the sender's memory.
std::optional<Message> Dense(const Message& message, uint64_t elements) {
  const std::optional<EncodedRuns> runs =
      DecodeRuns(message.payload.bytes(), elements, /*with_values=*/true);
  if (!runs.has_value()) return std::nullopt;
  auto dense = std::make_shared<AlignedBuffer>(elements * sizeof(float));  // zeros
  Scatter(*runs, dense->floats());
  const std::span<const float> floats = std::as_const(*dense).floats();
  Message decoded{message.header, Lease(std::move(dense), floats), Home::kReceiver};
  decoded.header.codec = Codec::kNone;
  return decoded;
}

}  // namespace

Shard::Shard(ShardOptions options, const SegmentTable& table, ShardSinks sinks)
    : options_(std::move(options)),
      table_(table),
      sinks_(std::move(sinks)),
      optimizer_(MakeLaneOptimizer(options_.optimizer, options_.sync)),
      owned_(OwnedSegments(options_)),
      pool_(SumBytes(options_, table, owned_)),
      states_(MakeStates(options_, table, owned_, pool_)),
      weights_(table, owned_,
               {.start_version = options_.start_version,
                .bf16_pulls = options_.pull_format == CommConfig::BF16,
                .new_buffer = options_.new_buffer}),
      admission_(AdmissionOptions(options_, owned_.size()), table, states_, owned_),
      open_pushes_(table.size(), table.num_blocks()),
      waiting_pulls_(table.size(), table.num_blocks()),
      lanes_(CountLanes(options_)),
      answers_(AnswerOptions(options_, lanes_)) {
  TUG_CHECK(options_.lane_of_segment.size() == table.size());
  TUG_CHECK(options_.block_names.size() == table.num_blocks());
  if (options_.optimizer.clip() != OptimizerConfig::OFF) {
    const auto scope = options_.optimizer.clip() == OptimizerConfig::GLOBAL
                           ? NormLedger::Scope::kAll
                           : NormLedger::Scope::kBlock;
    ledger_.emplace(table, options_.lane_of_segment, options_.lane, scope, options_.start_version);
  }
}

// ---- messages ----

void Shard::OnMessage(Message message, absl::Time now) {
  now_ = now;
  if (!std::exchange(started_, true)) weights_.Start();
  if (Fenced(message)) return;
  switch (message.header.kind) {
    case MessageKind::kPush:
      OnPush(std::move(message));
      break;
    case MessageKind::kPull:
      OnPull(message);
      break;
    case MessageKind::kWeightsReceived:
      OnWeightsReceived(message);
      break;
    case MessageKind::kNorms:
      OnNorms(message);
      break;
    case MessageKind::kNormsWanted:
      OnNormsWanted(message.header);
      break;
    case MessageKind::kReceived:
    case MessageKind::kCommitted:
    case MessageKind::kDropped:
    case MessageKind::kWeights:
    case MessageKind::kRefused:
    case MessageKind::kDeferred:
    case MessageKind::kPushWanted:
      Malformed(message.header, "is not for a lane");
  }
  AskForDeferred();
}

bool Shard::Fenced(const Message& message) {
  const WireHeader& header = message.header;
  if (header.job != options_.job) {
    Malformed(header, "is of another job");
    return true;
  }
  if (header.view == options_.view && header.timeline == options_.timeline) return false;
  ++counters_.refused;
  if (IsWorker(header.sender)) Reply(MessageKind::kRefused, header, 0);
  return true;
}

void Shard::Malformed(const WireHeader& header, const char* why) {
  if (counters_.malformed++ > 0) return;
  sinks_.notice(
      {absl::StrCat("malformed/", options_.lane),
       absl::StrCat("dropped a message of kind ", static_cast<int>(header.kind), " from ",
                    PeerName(header.sender), ": it ", why, "; further ones are only counted")});
}

WireHeader Shard::Header(MessageKind kind) const {
  WireHeader header;
  header.kind = kind;
  header.job = options_.job;
  header.timeline = options_.timeline;
  header.view = options_.view;
  return header;
}

void Shard::Reply(MessageKind kind, const WireHeader& to, uint64_t version) {
  WireHeader header = to;
  header.kind = kind;
  header.timeline = options_.timeline;
  header.view = options_.view;
  header.version = version;
  sinks_.send({to.sender, header, Lease()});
}

void Shard::ReplyToPush(MessageKind kind, const PushKey& key, uint64_t version) {
  WireHeader header = Header(kind);
  SetPush(key, header);
  header.version = version;
  sinks_.send({key.sender, header, Lease()});
}

TraceEvent Shard::EventOf(TraceKind kind, const WireHeader& header) const {
  return {.kind = kind,
          .block = header.block,
          .first_segment = header.first_segment,
          .segment_count = header.segment_count,
          .virtual_worker = header.virtual_worker,
          .peer = header.sender & ~kWorkerBit,
          .clock = header.clock,
          .bytes = header.payload_bytes};
}

uint32_t Shard::FirstId(const WireHeader& header) const {
  return table_.id(header.block, header.first_segment);
}

bool Shard::RangeIsOwn(const WireHeader& header) const {
  if (!IsWorker(header.sender) || header.block >= table_.num_blocks()) return false;
  const uint32_t segments = table_.segments_in_block(header.block);
  if (header.segment_count == 0 || header.first_segment >= segments ||
      header.segment_count > segments - header.first_segment) {
    return false;
  }
  const uint32_t first = FirstId(header);
  for (uint32_t id = first; id < first + header.segment_count; ++id) {
    if (states_[id] == nullptr) return false;
  }
  return true;
}

uint64_t Shard::RangeElements(const WireHeader& header) const {
  const uint32_t first = FirstId(header);
  return table_.segment(first + header.segment_count - 1).end - table_.segment(first).begin;
}

// A partition has at least one segment; twice, for a virtual worker that moves to another worker.
size_t Shard::MaxOpen(uint32_t block) const {
  return size_t{2} * options_.virtual_workers * table_.segments_in_block(block);
}

// ---- push ----

bool Shard::IsPush(const Message& message) const {
  const WireHeader& header = message.header;
  if (!RangeIsOwn(header) || header.token_count == 0 ||
      !SumTree::IsNode(options_.virtual_workers, header.virtual_worker,
                       header.virtual_worker_count)) {
    return false;
  }
  const uint64_t elements = RangeElements(header);
  switch (header.codec) {
    case Codec::kNone:
      return message.payload.size_bytes() == elements * sizeof(float);
    case Codec::kBf16:
      return message.payload.size_bytes() == elements * sizeof(uint16_t);
    case Codec::kRuns:
      return DecodeRuns(message.payload.bytes(), elements, /*with_values=*/true).has_value();
  }
  return false;
}

Shard::Fresh Shard::Examine(const WireHeader& push) {
  open_segments_.clear();
  Fresh fresh;
  const uint32_t first = FirstId(push);
  for (uint32_t id = first; id < first + push.segment_count; ++id) {
    const SegmentState& state = *states_[id];
    if (policy_.IsCommitted(push.clock, state.version)) continue;
    fresh.valid = fresh.valid && policy_.IsOpen(push.clock, state.version) &&
                  weights_.RunIsAt(id, push.clock);
    open_segments_.push_back(id);
    if (!state.sum.Covers(push.virtual_worker, push.virtual_worker_count)) ++fresh.missing;
  }
  return fresh;
}

void Shard::OnPush(Message message) {
  const WireHeader header = message.header;
  if (!IsPush(message)) {
    return Malformed(header, "is a push of what this lane does not own, or of the wrong size");
  }
  const Fresh fresh = Examine(header);
  if (!fresh.valid) return Malformed(header, "is a push at a clock that nobody can have reached");
  const PushKey key = KeyOf(header);
  if (open_segments_.empty()) {
    ++counters_.repeats;
    return ReplyToPush(MessageKind::kCommitted, key, key.clock + 1);
  }
  const bool repeat = fresh.missing == 0 && open_pushes_.Contains(key, open_segments_.front());
  if (!repeat && open_pushes_.in_block(header.block) >= MaxOpen(header.block)) {
    return Malformed(header, "is one of more pushes than the virtual workers can have open");
  }
  if (repeat || fresh.missing == 0) {
    ++counters_.repeats;
    if (!repeat) open_pushes_.Add(key, open_segments_);  // somebody else's, or cut in other ways
    return ReplyToPush(MessageKind::kReceived, key, key.clock);
  }
  if (header.codec == Codec::kRuns) {
    const TraceSpan span(options_.trace, EventOf(TraceKind::kDecode, header));
    std::optional<Message> dense = Dense(message, RangeElements(header));
    if (!dense.has_value()) return Malformed(header, "is a push of runs that change");
    message = *std::move(dense);
  }
  const bool own = header.codec != Codec::kNone || message.home == Home::kReceiver;
  if (!admission_.Admits(key, own)) {
    ++counters_.deferred;
    admission_.Defer(key, own);
    return ReplyToPush(MessageKind::kDeferred, key, key.clock);
  }
  admission_.Forget(key);
  open_pushes_.Add(key, open_segments_);
  AddToSums(key, std::move(message));
  // Once all its segments have closed, kCommitted has been sent, and says as much.
  const bool open = std::any_of(open_segments_.begin(), open_segments_.end(), [&](uint32_t id) {
    return policy_.IsOpen(key.clock, states_[id]->version);
  });
  if (open) ReplyToPush(MessageKind::kReceived, key, key.clock);
}

void Shard::AddToSums(const PushKey& key, Message message) {
  const bool bf16 = message.header.codec == Codec::kBf16;
  const size_t element_bytes = bf16 ? sizeof(uint16_t) : sizeof(float);
  const uint64_t range_begin = table_.segment(table_.id(key.block, key.first_segment)).begin;
  summed_.clear();
  TraceSpan span(options_.trace, EventOf(TraceKind::kSum, message.header));
  for (const uint32_t id : open_segments_) {
    SegmentState& state = *states_[id];
    if (state.sum.Covers(key.virtual_worker, key.virtual_worker_count)) continue;
    const Segment& segment = table_.segment(id);
    state.sum.Add(key.virtual_worker, key.virtual_worker_count,
                  {.payload = message.payload.Slice((segment.begin - range_begin) * element_bytes,
                                                    segment.elements() * element_bytes),
                   .bf16 = bf16,
                   .writable = message.home == Home::kReceiver});
    admission_.Changed(id);
    state.tokens += message.header.token_count;
    if (policy_.Closes(state.sum.added(), options_.virtual_workers)) summed_.push_back(id);
  }
  // From here on the sums alone hold it: who is told kCommitted finds the payload released.
  message.payload = Lease();
  span.End();
  for (const uint32_t id : summed_) OnSummed(id);
}

void Shard::AskForDeferred() {
  admission_.TakeWanted(now_, wanted_);
  for (const PushKey& key : wanted_) ReplyToPush(MessageKind::kPushWanted, key, key.clock);
  wanted_.clear();
}

// ---- time ----

void Shard::SetPullCredit(uint64_t pull_credit_bytes, absl::Time now) {
  now_ = now;
  answers_.SetCredit(pull_credit_bytes / lanes_);
  answers_.ListWorkers(freed_);
  SendFreed();
}

void Shard::SendFreed() {
  for (const PeerId worker : freed_) SendAnswers(worker);
  freed_.clear();
}

void Shard::OnTick(absl::Time now) {
  now_ = now;
  admission_.OnTick(now, wanted_);
  AskForDeferred();
  AskForNorms();
  answers_.OnTick(now, freed_);
  SendFreed();
}

}  // namespace tug
