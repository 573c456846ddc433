#include "server/shard.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/sum.h"

namespace tug {
namespace {

constexpr uint32_t kLanePeerOffset = LanePeer(0);

bool SamePush(const WireHeader& a, const WireHeader& b) {
  return a.sender == b.sender && a.first_segment == b.first_segment &&
         a.segment_count == b.segment_count && a.virtual_worker == b.virtual_worker &&
         a.virtual_worker_count == b.virtual_worker_count && a.clock == b.clock;
}

bool SamePull(const WireHeader& a, const WireHeader& b) {
  return a.sender == b.sender && a.first_segment == b.first_segment &&
         a.segment_count == b.segment_count && a.version == b.version && a.want == b.want;
}

bool FromWorker(const WireHeader& header) { return (header.sender & kWorkerBit) != 0; }

}  // namespace

Shard::Shard(ShardOptions options, const SegmentTable& table, ShardSinks sinks)
    : options_(std::move(options)),
      table_(table),
      sinks_(std::move(sinks)),
      optimizer_(options_.optimizer),
      states_(table.size()),
      open_pushes_(table.num_blocks()),
      waiting_pulls_(table.num_blocks()) {
  TUG_CHECK(options_.lane_of_segment.size() == table.size());
  TUG_CHECK(options_.block_names.size() == table.num_blocks());
  BuildRuns();
  if (options_.optimizer.clip() != OptimizerConfig::OFF) {
    const auto scope = options_.optimizer.clip() == OptimizerConfig::GLOBAL
                           ? NormLedger::Scope::kAll
                           : NormLedger::Scope::kBlock;
    ledger_.emplace(table, options_.lane_of_segment, options_.lane, scope, options_.start_version);
  }
}

void Shard::BuildRuns() {
  for (uint32_t id = 0; id < table_.size(); ++id) {
    if (options_.lane_of_segment[id] != options_.lane) continue;
    const Segment& segment = table_.segment(id);
    const bool extends = !owned_.empty() && owned_.back() + 1 == id && segment.index > 0;
    if (!extends) {
      runs_.emplace_back();
      runs_.back().block = segment.block;
      runs_.back().begin = segment.begin;
    }
    runs_.back().end = segment.end;
    states_[id] =
        std::make_unique<SegmentState>(static_cast<uint32_t>(runs_.size() - 1),
                                       options_.virtual_workers, segment.elements(), pool_);
    states_[id]->version = options_.start_version;
    states_[id]->snapshot_version = options_.start_version;
    owned_.push_back(id);
  }
  for (Run& run : runs_) {
    const size_t size_bytes = (run.end - run.begin) * sizeof(float);
    const uint64_t slot = options_.start_version % 2;
    run.copies[slot] = std::make_shared<AlignedBuffer>(size_bytes);
    run.copy_version[slot] = options_.start_version;
    run.m = AlignedBuffer(size_bytes);
    run.v = AlignedBuffer(size_bytes);
  }
}

std::span<float> Shard::Part(std::span<float> of_run, uint32_t segment) {
  const Segment& s = table_.segment(segment);
  return of_run.subspan(s.begin - runs_[states_[segment]->run].begin, s.elements());
}

std::span<float> Shard::weights(uint32_t segment) {
  const SegmentState& state = *states_[segment];
  return Part(runs_[state.run].copies[state.version % 2]->floats(), segment);
}

std::span<float> Shard::m(uint32_t segment) {
  return Part(runs_[states_[segment]->run].m.floats(), segment);
}

std::span<float> Shard::v(uint32_t segment) {
  return Part(runs_[states_[segment]->run].v.floats(), segment);
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

bool Shard::Fenced(const Message& message) {
  const WireHeader& header = message.header;
  if (header.job != options_.job) {
    Malformed(header, "is of another job");
    return true;
  }
  if (header.view == options_.view && header.timeline == options_.timeline) return false;
  ++counters_.refused;
  if (FromWorker(header)) Reply(MessageKind::kRefused, header, 0);
  return true;
}

void Shard::OnMessage(const Message& message, absl::Time now) {
  if (Fenced(message)) return;
  switch (message.header.kind) {
    case MessageKind::kPush:
      return OnPush(message, now);
    case MessageKind::kPull:
      return OnPull(message.header);
    case MessageKind::kNorms:
      return OnNorms(message);
    case MessageKind::kNormsWanted:
      return OnNormsWanted(message.header);
    case MessageKind::kReceived:
    case MessageKind::kCommitted:
    case MessageKind::kDropped:
    case MessageKind::kWeights:
    case MessageKind::kRefused:
    case MessageKind::kDeferred:
    case MessageKind::kPushWanted:
      Malformed(message.header, "is not for a lane");
  }
}

void Shard::Malformed(const WireHeader& header, const char* why) {
  if (counters_.malformed++ > 0) return;
  sinks_.notice(
      {absl::StrCat("malformed/", options_.lane),
       absl::StrCat("dropped a message of kind ", static_cast<int>(header.kind), " from ",
                    PeerName(header.sender), ": it ", why, "; further ones are only counted")});
}

bool Shard::RangeIsOwn(const WireHeader& header) const {
  if (!FromWorker(header) || header.block >= table_.num_blocks()) return false;
  const uint32_t segments = table_.segments_in_block(header.block);
  if (header.segment_count == 0 || header.first_segment >= segments ||
      header.segment_count > segments - header.first_segment) {
    return false;
  }
  const uint32_t first = table_.id(header.block, header.first_segment);
  for (uint32_t id = first; id < first + header.segment_count; ++id) {
    if (states_[id] == nullptr) return false;
  }
  return true;
}

uint64_t Shard::RangeElements(const WireHeader& header) const {
  const uint32_t first = table_.id(header.block, header.first_segment);
  return table_.segment(first + header.segment_count - 1).end - table_.segment(first).begin;
}

// A partition has at least one segment; twice, for a virtual worker that moves to another worker.
size_t Shard::MaxOpen(uint32_t block) const {
  return size_t{2} * options_.virtual_workers * table_.segments_in_block(block);
}

// ---- push ----

void Shard::OnPush(const Message& message, absl::Time now) {
  const WireHeader& header = message.header;
  const bool valid =
      RangeIsOwn(header) && header.codec == Codec::kNone && header.token_count > 0 &&
      message.payload.size_bytes() == RangeElements(header) * sizeof(float) &&
      SumTree::IsNode(options_.virtual_workers, header.virtual_worker, header.virtual_worker_count);
  if (!valid) {
    Malformed(header, "is a push of what this lane does not own, or of the wrong size");
    return;
  }
  for (const OpenPush& open : open_pushes_[header.block]) {
    if (!SamePush(open.header, header)) continue;
    ++counters_.repeats;
    return Reply(MessageKind::kReceived, header, header.version);
  }
  if (open_pushes_[header.block].size() >= MaxOpen(header.block)) {
    return Malformed(header, "is one of more pushes than the virtual workers can have open");
  }
  AddPush(message, now);
}

void Shard::AddPush(const Message& message, absl::Time now) {
  const WireHeader& header = message.header;
  const uint32_t first = table_.id(header.block, header.first_segment);
  const uint32_t end = first + header.segment_count;
  OpenPush open{header, 0};
  for (uint32_t id = first; id < end; ++id) {
    const SegmentState& state = *states_[id];
    if (policy_.IsCommitted(header.clock, state.version)) continue;
    if (!policy_.IsOpen(header.clock, state.version)) {
      Malformed(header, "is a push at a clock that nobody can have reached");
      return;
    }
    ++open.open_segments;
  }
  Reply(MessageKind::kReceived, header, header.version);
  if (open.open_segments == 0) {
    ++counters_.repeats;
    return Reply(MessageKind::kCommitted, header, header.clock + 1);
  }
  open_pushes_[header.block].push_back(open);

  const std::span<const float> gradient = message.payload.floats();
  const uint64_t range_begin = table_.segment(first).begin;
  for (uint32_t id = first; id < end; ++id) {
    SegmentState& state = *states_[id];
    const Segment& segment = table_.segment(id);
    if (!policy_.IsOpen(header.clock, state.version) ||
        state.sum.Covers(header.virtual_worker, header.virtual_worker_count)) {
      continue;
    }
    state.sum.Add(header.virtual_worker, header.virtual_worker_count,
                  gradient.subspan(segment.begin - range_begin, segment.elements()));
    state.tokens += header.token_count;
    if (policy_.Closes(state.sum.added(), options_.virtual_workers)) OnSummed(id, now);
  }
}

// ---- closing ----

void Shard::OnSummed(uint32_t segment, absl::Time now) {
  SegmentState& state = *states_[segment];
  const std::span<const float> sum = state.sum.sum();
  const NormEntry entry{kernels::SumOfSquares(sum.data(), static_cast<int64_t>(sum.size())),
                        state.sum.first_not_finite(), 0};
  if (!ledger_.has_value()) {
    const bool finite =
        std::isfinite(entry.sum_of_squares) && entry.bad_virtual_worker == NormEntry::kAllFinite;
    if (!finite) {
      NoticeSkip(state.version, table_.segment(segment).block, entry.bad_virtual_worker);
      return Close(segment, std::nullopt);
    }
    return Close(segment, GradientScale(0, state.tokens));
  }
  const uint32_t scope = ledger_->ScopeOfBlock(table_.segment(segment).block);
  if (!ledger_->AddOwn(segment, entry)) return;
  norms_asked_ = now;
  for (uint32_t lane : ledger_->OtherLanes(scope)) SendNorms(scope, ledger_->clock(scope), lane);
  CloseScopeIfComplete(scope);
}

void Shard::SendNorms(uint32_t scope, uint64_t clock, uint32_t to_lane) {
  const std::optional<std::vector<NormEntry>> entries = ledger_->OwnEntries(scope, clock);
  if (!entries.has_value()) return;
  auto owned = std::make_shared<const std::vector<NormEntry>>(*entries);
  WireHeader header = Header(MessageKind::kNorms);
  header.block = scope;
  header.clock = clock;
  sinks_.send({LanePeer(to_lane), header, Lease(owned, std::as_bytes(std::span(*owned)))});
}

void Shard::OnNorms(const Message& message) {
  const WireHeader& header = message.header;
  const uint32_t from_lane = header.sender - kLanePeerOffset;
  if (FromWorker(header) || !ledger_.has_value() ||
      !ledger_->AddRemote(header.block, from_lane, header.clock, message.payload.bytes())) {
    Malformed(header, "has norms that do not fit");
    return;
  }
  CloseScopeIfComplete(header.block);
}

void Shard::OnNormsWanted(const WireHeader& header) {
  if (FromWorker(header) || !ledger_.has_value() || !ledger_->IsScope(header.block)) {
    Malformed(header, "asks for norms that there are not");
    return;
  }
  SendNorms(header.block, header.clock, header.sender - kLanePeerOffset);
}

void Shard::CloseScopeIfComplete(uint32_t scope) {
  if (!ledger_->complete(scope)) return;
  const std::vector<uint32_t> segments = ledger_->OwnSegments(scope);
  const NormVerdict verdict = ledger_->Fold(scope);
  if (!verdict.finite) {
    NoticeSkip(ledger_->clock(scope), verdict.bad_block, verdict.bad_virtual_worker);
  }
  ledger_->Advance(scope);
  for (uint32_t id : segments) {
    Close(id, verdict.finite
                  ? std::optional(GradientScale(verdict.sum_of_squares, states_[id]->tokens))
                  : std::nullopt);
  }
}

float Shard::GradientScale(double sum_of_squares, uint64_t tokens) const {
  const double mean = 1.0 / static_cast<double>(tokens);
  if (!ledger_.has_value()) return static_cast<float>(mean);
  const double norm = std::sqrt(sum_of_squares) * mean;
  return static_cast<float>(mean * std::min(1.0, options_.optimizer.clip_norm() / (norm + 1e-6)));
}

void Shard::NoticeSkip(uint64_t clock, uint32_t block, uint32_t bad_virtual_worker) {
  const auto clip = options_.optimizer.clip();
  const std::string what = clip == OptimizerConfig::GLOBAL      ? "the whole update"
                           : clip == OptimizerConfig::PER_BLOCK ? "the update of that block"
                                                                : "the update of that segment";
  const std::string where = bad_virtual_worker == NormEntry::kAllFinite
                                ? std::string("summed over all virtual workers")
                                : absl::StrCat("from virtual worker ", bad_virtual_worker);
  sinks_.notice({absl::StrCat("nonfinite/", clock, "/",
                              clip == OptimizerConfig::GLOBAL ? "" : options_.block_names[block]),
                 absl::StrCat("step ", clock + 1, ": the gradient of block ",
                              options_.block_names[block], " ", where, " is not finite; ", what,
                              " is skipped (a lower learning rate or a smaller clip_norm helps "
                              "if this repeats)")});
}

std::span<float> Shard::WritableCopy(Run& run, uint64_t version) {
  const uint64_t slot = version % 2;
  if (run.copies[slot] == nullptr || run.copy_version[slot] != version) {
    // The first segment of the run to reach `version`: the copy of version - 2 goes, unless a
    // message on its way still reads it; then that message keeps it alive alone.
    const bool read = run.copies[slot] == nullptr || run.copies[slot].use_count() > 1;
    // Pairs with the release in the last reader's drop of its lease.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (read) {
      run.copies[slot] = std::make_shared<AlignedBuffer>((run.end - run.begin) * sizeof(float));
    }
    run.copy_version[slot] = version;
  }
  return run.copies[slot]->floats();
}

void Shard::Close(uint32_t segment, std::optional<float> scale) {
  SegmentState& state = *states_[segment];
  Run& run = runs_[state.run];
  const std::span<float> old_weights = weights(segment);
  const std::span<float> new_weights = Part(WritableCopy(run, state.version + 1), segment);
  if (options_.leave_out_update) {
    // Whatever the copy holds is the new version.
  } else if (scale.has_value()) {
    optimizer_.Update(state.version, table_.segment(segment).weight_decay, *scale, state.sum.sum(),
                      old_weights, new_weights, m(segment), v(segment));
  } else {
    std::copy(old_weights.begin(), old_weights.end(), new_weights.begin());
  }
  ++state.version;
  state.tokens = 0;
  state.sum.Clear();
  MaybeSnapshot(segment);
  CommitPushes(segment);
  AnswerPulls(table_.segment(segment).block);
}

void Shard::MaybeSnapshot(uint32_t segment) {
  SegmentState& state = *states_[segment];
  const bool due =
      (options_.checkpoint_interval > 0 && state.version % options_.checkpoint_interval == 0) ||
      state.version == final_version_;
  if (!due || state.snapshot_version == state.version) return;
  state.snapshot_version = state.version;
  sinks_.snapshot(
      {segment, state.version,
       Lease(runs_[state.run].copies[state.version % 2], std::span<const float>(weights(segment))),
       m(segment), v(segment)});
}

void Shard::SetFinalVersion(uint64_t version) {
  if (final_version_ == version) return;
  final_version_ = version;
  for (uint32_t id : owned_) MaybeSnapshot(id);
}

void Shard::CommitPushes(uint32_t segment) {
  const Segment& closed = table_.segment(segment);
  const uint64_t version = states_[segment]->version;
  std::vector<OpenPush>& pushes = open_pushes_[closed.block];
  std::vector<WireHeader> committed;
  std::erase_if(pushes, [&](OpenPush& push) {
    const WireHeader& header = push.header;
    const bool contains = header.clock + 1 == version && closed.index >= header.first_segment &&
                          closed.index - header.first_segment < header.segment_count;
    if (!contains || --push.open_segments > 0) return false;
    committed.push_back(header);
    return true;
  });
  for (const WireHeader& header : committed) Reply(MessageKind::kCommitted, header, version);
}

// ---- pull ----

void Shard::OnPull(const WireHeader& header) {
  if (!RangeIsOwn(header) || header.codec != Codec::kNone) {
    Malformed(header, "is a pull of what this lane does not own");
    return;
  }
  if (TryServe(header)) return;
  std::vector<WireHeader>& waiting = waiting_pulls_[header.block];
  if (header.version > states_[table_.id(header.block, header.first_segment)]->version + 1 ||
      waiting.size() >= MaxOpen(header.block)) {
    Malformed(header, "is a pull of a version that nobody can need yet");
    return;
  }
  const bool repeat = std::any_of(waiting.begin(), waiting.end(),
                                  [&](const WireHeader& other) { return SamePull(other, header); });
  if (repeat) {
    ++counters_.repeats;
    return;
  }
  waiting.push_back(header);
}

bool Shard::TryServe(const WireHeader& pull) {
  const uint32_t first = table_.id(pull.block, pull.first_segment);
  const uint64_t at = states_[first]->version;
  uint64_t oldest = at;
  for (uint32_t id = first + 1; id < first + pull.segment_count; ++id) {
    oldest = std::min(oldest, states_[id]->version);
  }
  if (oldest < pull.version) return false;
  const uint64_t served = pull.want == Want::kExact ? pull.version : oldest;
  const Run& run = runs_[states_[first]->run];
  if (run.copies[served % 2] == nullptr || run.copy_version[served % 2] != served) {
    Reply(MessageKind::kRefused, pull, oldest);  // older than the previous copy
    return true;
  }
  WireHeader header = pull;
  header.kind = MessageKind::kWeights;
  header.version = served;
  const std::shared_ptr<AlignedBuffer>& copy = run.copies[served % 2];
  const std::span<const float> part = std::as_const(*copy).floats().subspan(
      table_.segment(first).begin - run.begin, RangeElements(pull));
  sinks_.send({pull.sender, header, Lease(copy, part)});
  return true;
}

void Shard::AnswerPulls(uint32_t block) {
  std::erase_if(waiting_pulls_[block], [&](const WireHeader& pull) { return TryServe(pull); });
}

void Shard::OnTick(absl::Time now) {
  if (!ledger_.has_value() || now - norms_asked_ < options_.resend_after) return;
  norms_asked_ = now;
  const uint32_t scopes = ledger_->IsScope(NormLedger::kAllBlocks) ? 1 : table_.num_blocks();
  for (uint32_t s = 0; s < scopes; ++s) {
    const uint32_t scope = ledger_->ScopeOfBlock(s);
    if (!ledger_->Waiting(scope)) continue;
    for (uint32_t lane : ledger_->MissingLanes(scope)) {
      WireHeader header = Header(MessageKind::kNormsWanted);
      header.block = scope;
      header.clock = ledger_->clock(scope);
      sinks_.send({LanePeer(lane), header, Lease()});
    }
  }
}

}  // namespace tug
