#include "exchange/pull_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "exchange/exchange_header.h"
#include "kernels/bf16.h"
#include "kernels/copy.h"

namespace tug {

PullTable::PullTable(const ExchangeOptions& options, const PartitionPlan& plan,
                     const ExchangeSinks& sinks, SendBuffers& buffers, ExchangeCounters& counters)
    : options_(options),
      plan_(plan),
      sinks_(sinks),
      buffers_(buffers),
      counters_(counters),
      resend_after_(absl::Milliseconds(options.comm.resend_ms())),
      pulls_(plan.num_blocks()) {}

// ---- asking ----

ElementRuns PullTable::WantedRuns(const PullRequest& request, const Partition& part) const {
  if (request.runs.empty()) return {};
  return Clip(request.runs, part.begin, part.end);
}

Codec PullTable::CodecOf(const PullRequest& request, std::span<const ElementRun> runs,
                         const Partition& part) const {
  if (options_.comm.pull_format() == CommConfig::BF16) return Codec::kBf16;
  const bool all = request.runs.empty() || EncodedBytes(runs, true) >= part.bytes();
  return all ? Codec::kNone : Codec::kRuns;
}

void PullTable::Add(PullRequest request, absl::Time now) {
  const std::span<const Partition> plan = plan_.of_block(request.block);
  TUG_CHECK_EQ(request.destination.size(), plan.back().end);
  OpenPull& pull = pulls_[request.block];
  TUG_CHECK_EQ(pull.missing, 0u) << "a pull of block " << request.block << " is open";
  pull.request = std::move(request);
  if (options_.comm.pull_format() == CommConfig::BF16) pull.request.runs.clear();
  pull.partitions.assign(plan.size(), State::kMissing);
  pull.held.clear();
  pull.held.resize(plan.size());
  pull.version = ~uint64_t{0};
  pull.due = now + resend_after_;
  for (uint32_t p = 0; p < plan.size(); ++p) {
    if (!pull.request.runs.empty() && WantedRuns(pull.request, plan[p]).empty()) {
      pull.partitions[p] = State::kUnwanted;
    } else {
      ++pull.missing;
    }
  }
  TUG_CHECK(pull.missing > 0) << "runs outside the block";
  for (uint32_t p = 0; p < plan.size(); ++p) {
    if (pull.partitions[p] == State::kMissing) Send(pull, plan[p]);
  }
}

void PullTable::Send(const OpenPull& pull, const Partition& part) {
  const ElementRuns runs = WantedRuns(pull.request, part);
  WireHeader header = HeaderOf(options_, MessageKind::kPull, part);
  header.codec = CodecOf(pull.request, runs, part);
  header.want = pull.request.want;
  header.version = pull.request.version;
  Lease payload;
  if (header.codec == Codec::kRuns) {
    SendBuffers::Payload list = buffers_.Take(EncodedBytes(runs, false));
    EncodeRunList(runs, list.bytes);
    payload = std::move(list.lease);
  }
  sinks_.send({LanePeer(part.lane), header, std::move(payload)});
}

// ---- weights ----

void PullTable::OnWeights(const Message& message) {
  const WireHeader& header = message.header;
  const std::optional<uint32_t> partition = plan_.Find(header);
  OpenPull* pull = partition.has_value() ? &pulls_[header.block] : nullptr;
  if (pull == nullptr || pull->missing == 0 || pull->partitions[*partition] != State::kMissing) {
    ++counters_.ignored;
    return;
  }
  const bool right_version = pull->request.want == Want::kExact
                                 ? header.version == pull->request.version
                                 : header.version >= pull->request.version;
  if (!right_version || !Take(*pull, *partition, message)) {
    ++counters_.ignored;
    return;
  }
  counters_.pulled_bytes += message.payload.size_bytes();
  pull->version = std::min(pull->version, header.version);
  if (--pull->missing == 0) Complete(*pull);
}

bool PullTable::Take(OpenPull& pull, uint32_t partition, const Message& message) {
  const Partition& part = plan_.of_block(message.header.block)[partition];
  const ElementRuns runs = WantedRuns(pull.request, part);
  const Codec codec = CodecOf(pull.request, runs, part);
  if (message.header.codec != codec) return false;
  const std::span<float> out = pull.request.destination.subspan(part.begin, part.end - part.begin);
  const std::span<const std::byte> payload = message.payload.bytes();
  if (codec == Codec::kRuns) {
    const std::optional<EncodedRuns> decoded = DecodeRuns(payload, out.size(), true);
    if (!decoded.has_value() || decoded->runs != runs) return false;
    Scatter(*decoded, out);
  } else if (codec == Codec::kBf16) {
    if (payload.size() != out.size() * sizeof(kernels::Bf16)) return false;
    kernels::FloatFromBf16(reinterpret_cast<const kernels::Bf16*>(payload.data()), out.data(),
                           static_cast<int64_t>(out.size()));
  } else {
    if (payload.size() != part.bytes()) return false;
    if (pull.request.allow_in_place && message.home == Home::kSender) {
      pull.held[partition] = message.payload;
      pull.partitions[partition] = State::kHeld;
      return true;
    }
    kernels::CopyForLater(message.payload.floats().data(), out.data(),
                          static_cast<int64_t>(out.size()));
  }
  pull.partitions[partition] = State::kCopied;
  return true;
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
  BlockPulled event{pull.request.block, pull.version};
  if (IsInOnePiece(pull)) {
    event.in_place.elements = {pull.held.front().floats().data(), pull.request.destination.size()};
    event.in_place.leases = std::move(pull.held);
  } else {
    const std::span<const Partition> plan = plan_.of_block(pull.request.block);
    for (size_t p = 0; p < plan.size(); ++p) {
      if (pull.partitions[p] != State::kHeld) continue;
      kernels::CopyForLater(pull.held[p].floats().data(),
                            pull.request.destination.data() + plan[p].begin,
                            static_cast<int64_t>(plan[p].end - plan[p].begin));
    }
  }
  pull.held.clear();
  sinks_.pulled(std::move(event));
}

// ---- time ----

void PullTable::OnTick(absl::Time now) {
  for (OpenPull& pull : pulls_) {
    if (pull.missing == 0 || now < pull.due) continue;
    pull.due = now + resend_after_;
    ++counters_.resent;
    const std::span<const Partition> plan = plan_.of_block(pull.request.block);
    for (size_t p = 0; p < plan.size(); ++p) {
      if (pull.partitions[p] == State::kMissing) Send(pull, plan[p]);
    }
  }
}

}  // namespace tug
