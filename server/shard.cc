#include "server/shard.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "exchange/view_lanes.h"
#include "exchange/weights_payload.h"
#include "proto/sync_mode.h"
#include "server/memory.h"

// Pushes that are summed: shard_pushes.cc, and shard_closing.cc with norms. Pushes that are
// updates: shard_updates.cc. Pulls: shard_pulls.cc. Snapshots and views: shard_snapshots.cc.
// Copies: shard_replication.cc. A new placement: shard_takeover.cc.

namespace tug {
namespace {

// Between lanes that nothing stands between: what is not answered by then has met one that is not
// in this view yet, and one that refused for that is in it by then.
constexpr absl::Duration kFirstResend = absl::Milliseconds(200);

std::vector<uint32_t> OwnedSegments(const ShardOptions& options) {
  std::vector<uint32_t> owned;
  for (uint32_t id = 0; id < options.lane_of_segment.size(); ++id) {
    if (options.lane_of_segment[id] == options.lane) owned.push_back(id);
  }
  return owned;
}

bool Copies(const ShardOptions& options, uint32_t segment) {
  if (options.copies.empty()) return false;
  const std::vector<uint32_t>& lanes = options.copies[segment];
  return std::find(lanes.begin(), lanes.end(), options.lane) != lanes.end();
}

std::vector<uint32_t> CopiedSegments(const ShardOptions& options) {
  std::vector<uint32_t> copied;
  for (uint32_t id = 0; id < options.copies.size(); ++id) {
    if (Copies(options, id)) copied.push_back(id);
  }
  return copied;
}

std::vector<uint32_t> HeldSegments(const ShardOptions& options) {
  std::vector<uint32_t> held;
  for (uint32_t id = 0; id < options.lane_of_segment.size(); ++id) {
    if (options.lane_of_segment[id] == options.lane || Copies(options, id)) held.push_back(id);
  }
  return held;
}

// What sums use at most, but for exempt pushes (push_admission.h): more is not kept spare.
uint64_t SumBytes(const ShardOptions& options, const SegmentTable& table,
                  std::span<const uint32_t> owned) {
  uint64_t bytes = options.parking_bytes;
  for (uint32_t id : owned) bytes += table.segment(id).bytes();
  return bytes;
}

bool UpdatesPerPush(const ShardOptions& options) {
  return SyncModeOf(options.sync.policy()).update_per_push;
}

// What is clipped is a gradient; where every push is an update, workers have done it.
OptimizerConfig::Clip ClipOf(const ShardOptions& options) {
  const bool gradients = options.sync.local_steps() <= 1 && !UpdatesPerPush(options);
  return gradients ? options.optimizer.clip() : OptimizerConfig::OFF;
}

SegmentStates MakeStates(const ShardOptions& options, const SegmentTable& table,
                         std::span<const uint32_t> owned, const LiveSet& live, BufferPool& pool) {
  SegmentStates states(table.size());
  const bool per_push = UpdatesPerPush(options);
  const uint64_t start = options.start_version;
  for (uint32_t id : owned) {
    states[id] = std::make_unique<SegmentState>(start, per_push ? 1 : options.virtual_workers,
                                                table.segment(id).elements(), pool);
    if (per_push) {
      states[id]->version = start * options.virtual_workers;
      states[id]->next.emplace(live, start);
    }
    if (options.sync.policy() == SyncConfig::BACKUP) {
      states[id]->applied.emplace(options.virtual_workers);
    }
  }
  return states;
}

PushAdmission::Options AdmissionOptions(const ShardOptions& options, const SyncPolicy& policy,
                                        size_t owned) {
  return {.parking_bytes = options.parking_bytes,
          .start_clock = options.start_version,
          .most_deferred = size_t{2} * options.virtual_workers * owned,
          .spare = policy.spare(),
          .ask_for_closed = policy.spare() > 0,
          .repeat_after = options.resend_after};
}

ShadowMaker::Options ShadowOptions(const ShardOptions& options) {
  return {.density = options.pull_density,
          .seed = options.seed,
          .whole_every = options.checkpoint_interval};
}

uint64_t CountLanes(const ShardOptions& options) {
  std::vector<uint32_t> lanes = options.lane_of_segment;
  std::sort(lanes.begin(), lanes.end());
  return static_cast<uint64_t>(std::unique(lanes.begin(), lanes.end()) - lanes.begin());
}

// As memory.h predicts of them. A worker carries one virtual worker at least.
uint64_t CopiedAnswers(const ShardOptions& options, const SegmentTable& table,
                       std::span<const uint32_t> owned) {
  if (owned.empty()) return 0;
  uint64_t bytes = 0;
  for (const uint32_t id : owned) {
    bytes +=
        CopiedAnswerBytes(options.pull_format, options.pull_density, table.segment(id).elements());
  }
  return std::min(options.pull_credit_bytes / CountLanes(options), bytes) * options.virtual_workers;
}

WeightsStore::Options WeightsOptions(const ShardOptions& options, const SegmentTable& table,
                                     std::span<const uint32_t> owned, const Optimizer& optimizer) {
  WeightsStore::Options weights{.start_version = options.start_version,
                                .pull_codec = WeightsCodecOf(options.pull_format),
                                .one_copy = UpdatesPerPush(options),
                                .shadow = ShadowOptions(options),
                                .keeps_m = optimizer.keeps_m(),
                                .keeps_v = optimizer.keeps_v(),
                                .new_buffer = options.new_buffer,
                                .memory = options.memory};
  if (weights.one_copy) {
    weights.keep_bytes = options.parking_bytes;  // no sums are parked then
  } else {
    weights.keep_bytes = std::max(weights.keep_bytes, CopiedAnswers(options, table, owned));
  }
  return weights;
}

CopyStore::Options CopyOptions(const ShardOptions& options) {
  return {.start_version = options.start_version,
          .virtual_workers = options.virtual_workers,
          .update_per_push = UpdatesPerPush(options),
          .pull_codec = WeightsCodecOf(options.pull_format),
          .shadow = ShadowOptions(options),
          .leave_out_update = options.leave_out_update,
          .memory = options.memory};
}

Replication::Options ReplicationOptions(const ShardOptions& options, const Optimizer& optimizer) {
  const uint64_t bytes = 4 + (optimizer.keeps_m() ? 4 : 0) + (optimizer.keeps_v() ? 4 : 0) +
                         (UpdatesPerPush(options) ? 0 : 4) +
                         (options.pull_format == CommConfig::CHANGES ? 4 : 0);
  return {.resend_first = std::min(kFirstResend, options.resend_after),
          .resend_most = options.resend_after,
          .update_bytes = options.parking_bytes,
          .copy_bytes = options.parking_bytes / 4,
          .bytes_per_element = bytes};
}

bool IsCopied(const ShardOptions& options, std::span<const uint32_t> owned) {
  return !options.copies.empty() && std::any_of(owned.begin(), owned.end(), [&](uint32_t id) {
    return !options.copies[id].empty();
  });
}

AnswerQueue::Options AnswerOptions(const ShardOptions& options, uint64_t lanes) {
  return {.scheduler = options.scheduler,
          .credit_bytes = options.pull_credit_bytes / lanes,
          // A worker carries one virtual worker at least; twice, as for MaxOpen.
          .most_workers =
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
          .resend_first = std::min(kFirstResend, options.resend_after),
          .resend_after = options.resend_after,
          .new_buffer = options.new_buffer};
}

std::unique_ptr<const SyncPolicy> PolicyOf(const ShardOptions& options) {
  std::unique_ptr<const SyncPolicy> policy = MakeSyncPolicy(options.sync);
  if (!options.replace_policy_for_test) return policy;
  return options.replace_policy_for_test(std::move(policy));
}

}  // namespace

Shard::Shard(ShardOptions options, const SegmentTable& table, ShardSinks sinks)
    : options_(std::move(options)),
      table_(table),
      sinks_(std::move(sinks)),
      update_per_push_(UpdatesPerPush(options_)),
      clip_(ClipOf(options_)),
      policy_(PolicyOf(options_)),
      optimizer_(MakeLaneOptimizer(options_.optimizer, options_.sync)),
      owned_(OwnedSegments(options_)),
      held_(HeldSegments(options_)),
      view_(options_.view),
      live_(options_.virtual_workers),
      pool_(SumBytes(options_, table, owned_)),
      states_(MakeStates(options_, table, owned_, live_, pool_)),
      weights_(table, owned_, WeightsOptions(options_, table, owned_, *optimizer_)),
      admission_(AdmissionOptions(options_, *policy_, owned_.size()), table, states_, owned_),
      open_pushes_(table.size(), table.num_blocks()),
      early_(table.num_blocks(), size_t{2} * options_.virtual_workers * owned_.size(),
             options_.resend_after),
      waiting_pulls_(table.size(), table.num_blocks()),
      lanes_(CountLanes(options_)),
      answers_(AnswerOptions(options_, lanes_)),
      copies_(CopyOptions(options_), table, CopiedSegments(options_), *optimizer_),
      copy_buffers_(IsCopied(options_, owned_) ? options_.parking_bytes : 0, options_.new_buffer) {
  TUG_CHECK(options_.lane_of_segment.size() == table.size());
  TUG_CHECK(options_.copies.empty() || options_.copies.size() == table.size());
  TUG_CHECK(options_.block_names.size() == table.num_blocks());
  if (clip_ != OptimizerConfig::OFF) {
    const auto scope =
        clip_ == OptimizerConfig::GLOBAL ? NormLedger::Scope::kAll : NormLedger::Scope::kBlock;
    ledger_.emplace(table, options_.lane_of_segment, options_.lane, scope, options_.start_version);
  }
  if (options_.reduction.has_value()) {
    TUG_CHECK_EQ(owned_.size(), size_t{table.size()});
    reduction_.emplace(*options_.reduction, table,
                       LaneReduction::Sinks{
                           {.send = sinks_.send, .wake = sinks_.wake},
                           options_.new_buffer,
                           [this](const LaneReduction::Reduced& reduced) { OnReduced(reduced); }});
  }
  if (options_.cached_lanes.has_value()) {
    cache_.emplace(CacheOptions(options_), table, sinks_.send);
  }
  if (IsCopied(options_, owned_)) {
    replication_.emplace(ReplicationOptions(options_, *optimizer_), table, owned_, options_.copies);
    under_way_.resize(table.size());
    if (update_per_push_) queued_.emplace(table.size(), options_.parking_bytes);
  }
  const bool compensates = options_.sync.delay_compensation() > 0;
  if (update_per_push_ && (compensates || sinks_.record)) {
    served_.emplace(ServedWeights::Options{.keep_weights = compensates,
                                           // Of a view; each carries a virtual worker at least.
                                           .most_workers = options_.virtual_workers},
                    table);
  }
}

// ---- messages ----

void Shard::OnMessage(Message message, absl::Time now) {
  now_ = now;
  if (!std::exchange(started_, true)) weights_.Start();
  // Fenced by itself, and of no view.
  if (reduction_.has_value() && LaneReduction::IsFor(message.header.kind)) {
    return reduction_->OnMessage(std::move(message), now);
  }
  if (Fenced(message)) return;
  switch (message.header.kind) {
    case MessageKind::kPush:
      update_per_push_ ? OnUpdate(std::move(message)) : OnPush(std::move(message));
      push_.Release();
      break;
    case MessageKind::kPushAsked:
      OnPushAsked(message);
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
    case MessageKind::kWeights:
    case MessageKind::kRefused:
      OnAnswerToCache(message);
      break;
    case MessageKind::kReceived:
    case MessageKind::kCommitted:
    case MessageKind::kDropped:
    case MessageKind::kDeferred:
    case MessageKind::kPushWanted:
    case MessageKind::kElements:
    case MessageKind::kInCollective:
    case MessageKind::kRankFailed:
    case MessageKind::kClearToSend:
      Malformed(message.header, "is not for a lane");
      break;
    case MessageKind::kUpdate:
    case MessageKind::kCopied:
    case MessageKind::kCopyWanted:
    case MessageKind::kCopy:
      OnCopyMessage(message);
  }
  AskForDeferred();
  Replicate();
}

bool Shard::Fenced(const Message& message) {
  const WireHeader& header = message.header;
  if (header.job != options_.job) {
    Malformed(header, "is of another job");
    return true;
  }
  if (header.timeline == options_.timeline && !IsFromPast(header)) return false;
  ++counters_.refused;
  if (IsWorker(header.sender) || header.kind == MessageKind::kPull) {
    Reply(MessageKind::kRefused, header, 0);
  } else if (cache_.has_value()) {
    cache_->OnFenced(header, now_);
  }
  return true;
}

// Norms are of clocks, and of the same lanes and segments throughout a placement. A lane that is
// refused is told so only of its pulls; of what else it sends, the later one of two to come to a
// view says again what the other may lack.
bool Shard::IsFromPast(const WireHeader& header) const {
  const bool norms = header.kind == MessageKind::kNorms || header.kind == MessageKind::kNormsWanted;
  if (norms && !IsWorker(header.sender)) {
    return header.view < options_.placement || header.view > view_;
  }
  return header.view != view_;
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
  header.view = view_;
  return header;
}

void Shard::Reply(MessageKind kind, const WireHeader& to, uint64_t version) {
  WireHeader header = to;
  header.kind = kind;
  header.timeline = options_.timeline;
  header.view = view_;
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
          // A lane that pulls for its host is shown as its server.
          .peer = IsWorker(header.sender) ? header.sender & ~kWorkerBit
                                          : (header.sender - LanePeer(0)) / kMaxLanesPerServer,
          .clock = header.clock,
          .bytes = header.payload_bytes};
}

uint32_t Shard::FirstId(const WireHeader& header) const {
  return table_.id(header.block, header.first_segment);
}

bool Shard::RangeExists(const WireHeader& header) const {
  if (header.block >= table_.num_blocks()) return false;
  const uint32_t segments = table_.segments_in_block(header.block);
  return header.segment_count > 0 && header.first_segment < segments &&
         header.segment_count <= segments - header.first_segment;
}

bool Shard::RangeIsOwn(const WireHeader& header) const {
  if (!RangeExists(header)) return false;
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

SegmentClocks Shard::ClocksOf(const SegmentState& state) const {
  return {.version = state.version,
          .next = state.next.has_value() ? &*state.next : nullptr,
          .applied = state.applied.has_value() ? &*state.applied : nullptr};
}

// A partition has at least one segment; twice, for a virtual worker that moves to another worker.
size_t Shard::MaxOpen(uint32_t block) const {
  return size_t{2} * options_.virtual_workers * table_.segments_in_block(block);
}

bool Shard::NamesOwnPush(const WireHeader& header) const {
  return IsWorker(header.sender) && RangeIsOwn(header) && header.token_count > 0 &&
         SumTree::IsNode(options_.virtual_workers, header.virtual_worker,
                         header.virtual_worker_count);
}

bool Shard::ExpandPush() {
  const bool runs = push_.header().codec == Codec::kRuns;
  const TraceSpan span(runs ? options_.trace : nullptr,
                       EventOf(TraceKind::kDecode, push_.header()));
  return push_.Expand(table_);
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
  early_.OnTick(
      now, [this](const PushKey& key) { return IsApplied(key); }, wanted_);
  AskForDeferred();
  AskForNorms();
  answers_.OnTick(now, freed_);
  SendFreed();
  if (cache_.has_value()) cache_->OnTick(now);
  if (replication_.has_value()) replication_->OnTick(now);
  Replicate();
}

}  // namespace tug
