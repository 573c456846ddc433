#include "exchange/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace tug {

Exchange::Exchange(ExchangeOptions options, const SegmentTable& table, ExchangeSinks sinks)
    : options_(std::move(options)),
      resend_after_(absl::Milliseconds(options_.comm.resend_ms())),
      sinks_(std::move(sinks)),
      queue_(options_.comm.credit_bytes()) {
  for (uint32_t block = 0; block < table.num_blocks(); ++block) {
    plan_.push_back(
        CutBlock(table, block, options_.lane_of_segment, options_.comm.partition_bytes()));
  }
}

WireHeader Exchange::Header(MessageKind kind, const Partition& partition) const {
  WireHeader header;
  header.kind = kind;
  header.job = options_.job;
  header.timeline = options_.timeline;
  header.view = options_.view;
  header.block = partition.block;
  header.first_segment = partition.first_segment;
  header.segment_count = partition.segment_count;
  return header;
}

// ---- push ----

void Exchange::Push(PushRequest request, absl::Time now) {
  const std::vector<Partition>& plan = plan_[request.block];
  TUG_CHECK(request.gradient.size_bytes() == plan.back().end * sizeof(float));
  const PushKey key{request.block, request.virtual_worker, request.clock};
  // Among pushes, the block that the next forward pass needs first goes first.
  const uint64_t priority =
      options_.comm.scheduler() == CommConfig::FIFO ? 0 : uint64_t{request.block};
  OpenPush push{std::move(request),
                std::vector<PartitionPush>(plan.size(), PartitionPush{.patience = resend_after_}),
                plan.size()};
  TUG_CHECK(pushes_.emplace(key, std::move(push)).second);
  for (size_t p = 0; p < plan.size(); ++p) {
    queued_[next_item_] = {key, p};
    queue_.Enqueue(priority, plan[p].bytes(), next_item_++);
  }
  SendQueued(now);
}

void Exchange::SendQueued(absl::Time now) {
  while (std::optional<uint64_t> item = queue_.Next()) {
    const auto [key, partition] = queued_.extract(*item).mapped();
    SendPush(pushes_.at(key), partition, now);
  }
}

void Exchange::SendPush(OpenPush& push, size_t partition, absl::Time now) {
  const PushRequest& request = push.request;
  const Partition& part = plan_[request.block][partition];
  WireHeader header = Header(MessageKind::kPush, part);
  header.virtual_worker = request.virtual_worker;
  header.virtual_worker_count = request.virtual_worker_count;
  header.clock = request.clock;
  header.version = request.clock;
  header.token_count = request.token_count;
  push.partitions[partition].state = PushState::kSent;
  push.partitions[partition].sent_at = now;
  counters_.pushed_bytes += part.bytes();
  sinks_.send({LanePeer(part.lane), header,
               request.gradient.Slice(part.begin * sizeof(float), part.bytes())});
}

std::optional<size_t> Exchange::PartitionOf(const WireHeader& header) const {
  if (header.block >= plan_.size()) return std::nullopt;
  const std::vector<Partition>& plan = plan_[header.block];
  const auto found =
      std::lower_bound(plan.begin(), plan.end(), header.first_segment,
                       [](const Partition& p, uint32_t first) { return p.first_segment < first; });
  if (found == plan.end() || found->first_segment != header.first_segment ||
      found->segment_count != header.segment_count || LanePeer(found->lane) != header.sender) {
    return std::nullopt;
  }
  return static_cast<size_t>(found - plan.begin());
}

void Exchange::OnPushAnswer(const WireHeader& header, absl::Time now) {
  const std::optional<size_t> partition = PartitionOf(header);
  const auto found = pushes_.find({header.block, header.virtual_worker, header.clock});
  if (!partition.has_value() || found == pushes_.end()) {
    ++counters_.ignored;
    return;
  }
  OpenPush& push = found->second;
  PushState& state = push.partitions[*partition].state;
  if (state == PushState::kSent) {  // kCommitted says received too, should that answer be lost
    state = PushState::kReceived;
    queue_.Received(plan_[header.block][*partition].bytes());
  }
  if (header.kind == MessageKind::kCommitted && state == PushState::kReceived) {
    state = PushState::kCommitted;
    --push.uncommitted;
  }
  if (push.uncommitted == 0) {
    const PushCommitted event{header.block, header.virtual_worker, header.clock};
    pushes_.erase(found);
    sinks_.committed(event);
  }
  SendQueued(now);
}

// ---- pull ----

void Exchange::Pull(PullRequest request, absl::Time now) {
  const size_t partitions = plan_[request.block].size();
  TUG_CHECK(request.destination.size() == plan_[request.block].back().end);
  const auto [entry, inserted] = pulls_.emplace(
      request.block, OpenPull{request, std::vector<bool>(partitions, false), partitions, now});
  TUG_CHECK(inserted);
  for (size_t p = 0; p < partitions; ++p) SendPull(entry->second, p);
}

void Exchange::SendPull(OpenPull& pull, size_t partition) {
  const Partition& part = plan_[pull.request.block][partition];
  WireHeader header = Header(MessageKind::kPull, part);
  header.want = pull.request.want;
  header.version = pull.request.version;
  sinks_.send({LanePeer(part.lane), header, Lease()});
}

void Exchange::OnWeights(const Message& message) {
  const WireHeader& header = message.header;
  const std::optional<size_t> partition = PartitionOf(header);
  const auto found = pulls_.find(header.block);
  if (!partition.has_value() || found == pulls_.end() || found->second.arrived[*partition]) {
    ++counters_.ignored;
    return;
  }
  OpenPull& pull = found->second;
  const Partition& part = plan_[header.block][*partition];
  const bool right_version = pull.request.want == Want::kExact
                                 ? header.version == pull.request.version
                                 : header.version >= pull.request.version;
  if (!right_version || header.codec != Codec::kNone ||
      message.payload.size_bytes() != part.bytes()) {
    ++counters_.ignored;
    return;
  }
  std::memcpy(pull.request.destination.data() + part.begin, message.payload.bytes().data(),
              part.bytes());
  counters_.pulled_bytes += part.bytes();
  pull.arrived[*partition] = true;
  if (--pull.missing > 0) return;
  const BlockPulled event{header.block, header.version};
  pulls_.erase(found);
  sinks_.pulled(event);
}

// ---- both ----

void Exchange::OnMessage(const Message& message, absl::Time now) {
  const WireHeader& header = message.header;
  // A refusal bears the lane's view and timeline, which need not be ours.
  const bool ours = header.timeline == options_.timeline && header.view == options_.view;
  if (header.job != options_.job || (!ours && header.kind != MessageKind::kRefused)) {
    ++counters_.ignored;
    return;
  }
  switch (header.kind) {
    case MessageKind::kReceived:
    case MessageKind::kCommitted:
      return OnPushAnswer(header, now);
    case MessageKind::kWeights:
      return OnWeights(message);
    case MessageKind::kRefused:
      ++counters_.refused;  // retriable: OnTick sends again
      return;
    case MessageKind::kDropped:
    case MessageKind::kDeferred:
    case MessageKind::kPushWanted:
    case MessageKind::kPush:
    case MessageKind::kPull:
    case MessageKind::kNorms:
    case MessageKind::kNormsWanted:
      ++counters_.ignored;  // bsp drops nothing; the others are not for a worker
  }
}

void Exchange::OnTick(absl::Time now) {
  for (auto& [key, push] : pushes_) {
    for (size_t p = 0; p < push.partitions.size(); ++p) {
      PartitionPush& partition = push.partitions[p];
      const PushState state = partition.state;
      const bool unanswered = state == PushState::kSent || state == PushState::kReceived;
      if (!unanswered || now - partition.sent_at < partition.patience) continue;
      ++counters_.resent;
      // A received push may wait long for a straggler: ever fewer repeats, not one an interval.
      partition.patience *= 2;
      SendPush(push, p, now);
      partition.state = state;  // credit is held, or has returned, as before
    }
  }
  for (auto& [block, pull] : pulls_) {
    if (now - pull.sent_at < resend_after_) continue;
    pull.sent_at = now;
    ++counters_.resent;
    for (size_t p = 0; p < pull.arrived.size(); ++p) {
      if (!pull.arrived[p]) SendPull(pull, p);
    }
  }
}

}  // namespace tug
