// SPDX-License-Identifier: Apache-2.0
#include "exchange/pull_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/elapsed.h"
#include "blocks/exchange_header.h"
#include "blocks/weights_payload.h"
#include "kernels/bf16.h"

namespace tug {
namespace {

constexpr uint32_t kAsInt8 = 1;  // index of INT8 among the chooser's methods
// The lane encodes once per requesting worker, which takes about as long as decoding: counts both.
constexpr double kBothEnds = 2;

std::optional<CodecChooser> ChooserOf(CommConfig::Format pull_format) {
  if (pull_format != CommConfig::PULL_AUTO) return std::nullopt;
  constexpr uint64_t kElements = 262144;
  const double int8 = static_cast<double>(WeightsBytes(Codec::kInt8, kElements)) / kElements;
  return CodecChooser(std::vector<double>{sizeof(float), int8});
}

}  // namespace

PullTable::PullTable(const ExchangeOptions& options, const SegmentTable& table,
                     const std::shared_ptr<const PartitionPlan>& plan, const ExchangeSinks& sinks,
                     SendBuffers& buffers, SegmentVersions& versions, ExchangeCounters& counters)
    : options_(options),
      table_(table),
      plan_(plan),
      sinks_(sinks),
      buffers_(buffers),
      versions_(versions),
      counters_(counters),
      resend_after_(absl::Milliseconds(options.comm.resend_ms())),
      codec_(WeightsCodecOf(options.comm.pull_format())),
      chooser_(ChooserOf(options.comm.pull_format())),
      pulls_(plan->num_blocks()) {
  if (codec_ == Codec::kChanges) holds_.emplace(table);
}

// ---- asking ----

ElementRuns PullTable::WantedRuns(const PullRequest& request, const Partition& part) const {
  if (request.runs.empty()) return {};
  return Clip(request.runs, part.begin, part.end);
}

Codec PullTable::CodecOf(const OpenPull& pull, uint32_t partition,
                         std::span<const ElementRun> runs) const {
  const Codec whole = pull.codecs[partition];
  if (pull.request.runs.empty()) return whole;
  return EncodedBytes(runs, true) >= PartsOf(pull)[partition].bytes() ? whole : Codec::kRuns;
}

Codec PullTable::ChooseCodec(const PullRequest& request, const Partition& part) {
  if (!chooser_.has_value()) return codec_;
  const bool shares_memory =
      sinks_.shares_memory != nullptr && sinks_.shares_memory(LanePeer(part.lane));
  const uint32_t method = chooser_->Choose(part.lane, shares_memory, part.end - part.begin,
                                           request.clock + request.virtual_workers.first);
  return method == kAsInt8 ? Codec::kInt8 : Codec::kNone;
}

void PullTable::KeepLanes(std::span<const uint32_t> lanes) {
  if (chooser_.has_value()) chooser_->KeepLanes(lanes);
}

std::vector<CodecChooser::Chosen> PullTable::chosen() const {
  return chooser_.has_value() ? chooser_->chosen() : std::vector<CodecChooser::Chosen>();
}

void PullTable::Add(PullRequest request, absl::Time now) {
  const uint64_t elements = plan_->block_elements(request.block);
  const bool raw = !request.bf16_destination.empty();
  TUG_CHECK(!raw || codec_ == Codec::kBf16);
  TUG_CHECK_EQ(raw ? request.bf16_destination.size() : request.destination.size(), elements);
  OpenPull& pull = pulls_[request.block];
  if (pull.missing > 0) sinks_.pulled({.block = request.block, .superseded = true});
  pull.request = std::move(request);
  if (codec_ != Codec::kNone || chooser_.has_value()) pull.request.runs.clear();
  if (holds_.has_value()) holds_->SetDestination(pull.request.block, pull.request.destination);
  if (options_.trace != nullptr) pull.asked_ns = options_.trace->NowNs();
  Ask(pull, now);
}

void PullTable::GiveUp(uint32_t block) {
  OpenPull& pull = pulls_[block];
  if (pull.missing == 0) return;
  pull.missing = 0;
  pull.held.clear();
  sinks_.pulled({.block = block, .superseded = true});
}

void PullTable::Ask(OpenPull& pull, absl::Time now) {
  const std::span<const Partition> plan = plan_->of_block(pull.request.block);
  pull.first &= pull.plan == nullptr;
  pull.plan = plan_;
  pull.missing = 0;
  pull.partitions.assign(plan.size(), State::kMissing);
  pull.held.clear();
  pull.held.resize(plan.size());
  pull.version = ~uint64_t{0};
  pull.newest = 0;
  pull.due = now + resend_after_;
  if (chooser_.has_value()) pull.asked = NowOf(options_, now);
  pull.codecs.clear();
  for (const Partition& part : plan) pull.codecs.push_back(ChooseCodec(pull.request, part));
  for (uint32_t p = 0; p < plan.size(); ++p) {
    if (!pull.request.runs.empty() && WantedRuns(pull.request, plan[p]).empty()) {
      pull.partitions[p] = State::kUnwanted;
    } else {
      ++pull.missing;
    }
  }
  TUG_CHECK(pull.missing > 0) << "runs outside the block";
  for (uint32_t p = 0; p < plan.size(); ++p) {
    if (pull.partitions[p] == State::kMissing) Send(pull, p);
  }
}

void PullTable::Send(const OpenPull& pull, uint32_t partition) {
  const Partition& part = PartsOf(pull)[partition];
  const ElementRuns runs = WantedRuns(pull.request, part);
  WireHeader header = HeaderOf(options_, MessageKind::kPull, part);
  header.codec = CodecOf(pull, partition, runs);
  header.want = pull.request.want;
  header.clock = pull.request.clock;
  if (holds_.has_value()) header.version = holds_->Version(part);
  header.virtual_worker = pull.request.virtual_workers.first;
  header.virtual_worker_count = pull.request.virtual_workers.count;
  Lease payload;
  if (header.codec == Codec::kRuns) {
    SendBuffers::Payload list = buffers_.Take(EncodedBytes(runs, false));
    EncodeRunList(runs, list.bytes);
    payload = std::move(list.lease);
  }
  // Only exact pulls of whole partitions go to the cache: wanted rows differ between workers, and
  // the newest version changes continually.
  const bool from_owner = header.codec == Codec::kRuns || header.want != Want::kExact;
  const uint32_t lane =
      from_owner ? part.lane : pull.plan->pull_lane(pull.request.block, partition);
  sinks_.send({LanePeer(lane), header, std::move(payload)});
}

// ---- weights ----

void PullTable::OnWeights(const Message& message, absl::Time now) {
  const WireHeader& header = message.header;
  if (header.ack_id != 0) ReportReceived(header);
  OpenPull* pull = header.block < pulls_.size() ? &pulls_[header.block] : nullptr;
  std::optional<uint32_t> partition;
  if (pull != nullptr && pull->missing > 0) partition = pull->plan->FindPulled(header);
  if (!partition.has_value() || pull->partitions[*partition] != State::kMissing) {
    ++counters_.ignored;
    return;
  }
  const bool measures = chooser_.has_value() && message.home == Home::kReceiver;
  const absl::Time arrived = measures ? NowOf(options_, now) : now;
  const int64_t arrived_ns = options_.trace == nullptr ? 0 : options_.trace->NowNs();
  if (!Answers(pull->request, header) || !Take(*pull, *partition, message)) {
    ++counters_.ignored;
    return;
  }
  counters_.pulled_bytes += message.payload.size_bytes();
  if (measures) {
    chooser_->link(header.sender - LanePeer(0))
        .OnArrived(pull->asked, message.payload.size_bytes(), arrived);
  }
  if (options_.trace != nullptr) TraceArrival(*pull, message, arrived_ns);
  versions_.Set(PartsOf(*pull)[*partition], header.version);
  pull->version = std::min(pull->version, header.version);
  pull->newest = std::max(pull->newest, header.version);
  if (--pull->missing == 0) Complete(*pull);
}

// If versions do not identify clocks, a reply is matched by its clock and virtual workers. A late
// reply to an earlier pull, or to a pull for virtual workers that have moved away, may lack this
// worker's own pushes or be too far ahead of the slowest worker.
bool PullTable::Answers(const PullRequest& request, const WireHeader& weights) const {
  if (const std::optional<uint64_t> version = options_.mode.VersionAt(request.clock)) {
    return request.want == Want::kExact ? weights.version == *version : weights.version >= *version;
  }
  return weights.want == request.want && weights.clock == request.clock &&
         weights.virtual_worker == request.virtual_workers.first &&
         weights.virtual_worker_count == request.virtual_workers.count;
}

// Also acknowledges weights that no pull waits for: they still hold the lane's credit.
void PullTable::ReportReceived(const WireHeader& weights) {
  WireHeader header;
  header.kind = MessageKind::kWeightsReceived;
  header.job = options_.job;
  header.timeline = options_.timeline;
  header.view = options_.view;
  header.ack_id = weights.ack_id;
  sinks_.send({weights.sender, header, Lease()});
}

void PullTable::TraceArrival(const OpenPull& pull, const Message& message, int64_t arrived_ns) {
  const WireHeader& header = message.header;
  if (header.version == 0) return;  // initial weights, not made by a push
  TraceEvent event{.kind = TraceKind::kPull,
                   .block = header.block,
                   .first_segment = header.first_segment,
                   .segment_count = header.segment_count,
                   .peer = header.sender - LanePeer(0),
                   .clock = header.version - 1,
                   .bytes = message.payload.size_bytes(),
                   .begin_ns = pull.asked_ns,
                   .end_ns = arrived_ns};
  options_.trace->Add(event);
  event.kind = TraceKind::kDecode;
  event.begin_ns = arrived_ns;
  event.end_ns = options_.trace->NowNs();
  options_.trace->Add(event);
}

bool PullTable::Take(OpenPull& pull, uint32_t partition, const Message& message) {
  const Partition& part = PartsOf(pull)[partition];
  const size_t elements = part.end - part.begin;
  const std::span<const std::byte> payload = message.payload.bytes();
  if (holds_.has_value()) {
    const auto weights = pull.request.destination.subspan(part.begin, elements);
    if (!holds_->Take(part, message.header, payload, weights)) return false;
    pull.partitions[partition] = State::kCopied;
    return true;
  }
  const ElementRuns runs = WantedRuns(pull.request, part);
  const Codec codec = CodecOf(pull, partition, runs);
  if (message.header.codec != codec) return false;
  if (codec == Codec::kRuns) {
    const std::optional<EncodedRuns> decoded = DecodeRuns(payload, elements, true);
    if (!decoded.has_value() || decoded->runs != runs) return false;
    Scatter(*decoded, pull.request.destination.subspan(part.begin, elements));
    pull.partitions[partition] = State::kCopied;
    return true;
  }
  if (payload.size() != PayloadBytes(codec, part)) return false;
  const Codec wanted = pull.request.bf16_destination.empty() ? Codec::kNone : Codec::kBf16;
  const bool as_wanted = codec == wanted;
  if (as_wanted && pull.request.allow_in_place && message.home == Home::kSender) {
    pull.held[partition] = message.payload;
    pull.partitions[partition] = State::kHeld;
  } else {
    CopyArrived(pull, partition, message.payload);
    pull.partitions[partition] = State::kCopied;
  }
  return true;
}

size_t PullTable::PayloadBytes(Codec codec, const Partition& part) const {
  return WeightsBytes(codec, table_, table_.id(part.block, part.first_segment), part.segment_count);
}

void PullTable::CopyArrived(const OpenPull& pull, uint32_t partition, const Lease& payload) {
  if (!chooser_.has_value() || pull.first) return Copy(pull, partition, payload);
  double seconds = 0;
  {
    const ElapsedSeconds elapsed(options_.time, seconds);
    Copy(pull, partition, payload);
  }
  const bool int8 = pull.codecs[partition] == Codec::kInt8;
  const Partition& part = PartsOf(pull)[partition];
  chooser_->OnMade(int8 ? kAsInt8 : 0, part.end - part.begin, payload.size_bytes(),
                   int8 ? kBothEnds * seconds : seconds);
}

void PullTable::Copy(const OpenPull& pull, uint32_t partition, const Lease& payload) const {
  const PullRequest& request = pull.request;
  const Partition& part = PartsOf(pull)[partition];
  const std::span<const std::byte> bytes = payload.bytes();
  if (!request.bf16_destination.empty()) {
    std::memcpy(request.bf16_destination.data() + part.begin, bytes.data(), bytes.size());
  } else {
    DecodeWeights(pull.codecs[partition], table_, table_.id(part.block, part.first_segment),
                  part.segment_count, bytes,
                  request.destination.subspan(part.begin, part.end - part.begin));
  }
}

bool PullTable::IsInOnePiece(const OpenPull& pull) const {
  for (size_t p = 0; p < pull.partitions.size(); ++p) {
    if (pull.partitions[p] != State::kHeld) return false;
    if (p == 0) continue;
    const std::span<const std::byte> before = pull.held[p - 1].bytes();
    if (before.data() + before.size() != pull.held[p].bytes().data()) return false;
  }
  return true;
}

void PullTable::Complete(OpenPull& pull) {
  BlockPulled event{.block = pull.request.block,
                    .version = pull.version,
                    .newest = pull.newest,
                    .clock = pull.request.clock};
  for (size_t p = 0; p < pull.partitions.size(); ++p) {
    if (pull.partitions[p] == State::kUnwanted) {
      versions_.Set(PartsOf(pull)[p], kAnyWeightsVersion);
    }
  }
  if (IsInOnePiece(pull)) {
    const Lease& first = pull.held.front();
    const std::span<kernels::Bf16> bf16 = pull.request.bf16_destination;
    if (bf16.empty()) {
      event.in_place.elements = {first.floats().data(), pull.request.destination.size()};
    } else {
      event.in_place.bf16_elements = {reinterpret_cast<const kernels::Bf16*>(first.bytes().data()),
                                      bf16.size()};
    }
    event.in_place.leases = std::move(pull.held);
  } else {
    for (uint32_t p = 0; p < pull.partitions.size(); ++p) {
      if (pull.partitions[p] == State::kHeld) Copy(pull, p, pull.held[p]);
    }
  }
  pull.held.clear();
  sinks_.pulled(std::move(event));
}

bool PullTable::HasNothingOf(uint32_t block) const {
  const OpenPull& pull = pulls_[block];
  return std::none_of(pull.partitions.begin(), pull.partitions.end(),
                      [](State state) { return state == State::kCopied || state == State::kHeld; });
}

// ---- time ----

void PullTable::OnTick(absl::Time now) {
  for (OpenPull& pull : pulls_) {
    if (pull.missing > 0 && now >= pull.due) AskAgain(pull, now);
  }
}

void PullTable::AskForAllAgain(absl::Time now) {
  for (OpenPull& pull : pulls_) {
    if (pull.missing > 0) AskAgain(pull, now);
  }
}

void PullTable::CutAllAgain(absl::Time now) {
  for (OpenPull& pull : pulls_) {
    if (pull.missing == 0) continue;
    ++counters_.resent;
    Ask(pull, now);
  }
}

void PullTable::AskAgain(OpenPull& pull, absl::Time now) {
  pull.due = now + resend_after_;
  ++counters_.resent;
  for (uint32_t p = 0; p < pull.partitions.size(); ++p) {
    if (pull.partitions[p] == State::kMissing) Send(pull, p);
  }
}

}  // namespace tug
