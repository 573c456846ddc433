#include "server/weights_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "exchange/runs.h"

namespace tug {
namespace {

std::span<kernels::Bf16> Halves(AlignedBuffer& buffer) {
  return {reinterpret_cast<kernels::Bf16*>(buffer.data()),
          buffer.size_bytes() / sizeof(kernels::Bf16)};
}

template <typename T>
Lease LeaseOf(const std::shared_ptr<AlignedBuffer>& buffer, std::span<T> part) {
  return Lease(buffer, std::as_bytes(part));
}

}  // namespace

WeightsStore::WeightsStore(const SegmentTable& table, std::span<const uint32_t> owned,
                           Options options)
    : table_(table),
      options_(std::move(options)),
      run_of_segment_(table.size()),
      send_buffers_(options_.keep_bytes, options_.new_buffer) {
  for (size_t i = 0; i < owned.size(); ++i) {
    const uint32_t id = owned[i];
    const Segment& segment = table_.segment(id);
    const bool extends = i > 0 && owned[i - 1] + 1 == id && segment.index > 0;
    if (!extends) {
      runs_.emplace_back();
      runs_.back().begin = segment.begin;
    }
    runs_.back().end = segment.end;
    ++runs_.back().segments;
    run_of_segment_[id] = static_cast<uint32_t>(runs_.size() - 1);
  }
  const uint64_t start = options_.start_version;
  for (Run& run : runs_) {
    const size_t size_bytes = run.elements() * sizeof(float);
    const bool sent = !options_.bf16_pulls && !options_.one_copy;
    run.weights.at[start % 2] =
        sent ? options_.new_buffer(size_bytes) : std::make_shared<AlignedBuffer>(size_bytes);
    run.weights.version[start % 2] = start;
    if (options_.one_copy) run.weights.at[(start + 1) % 2] = run.weights.at[start % 2];
    if (options_.keeps_m) run.m = AlignedBuffer(size_bytes);
    if (options_.keeps_v) run.v = AlignedBuffer(size_bytes);
    run.newest = start;
    run.at_newest = run.segments;
  }
}

std::span<float> WeightsStore::weights(uint32_t segment, uint64_t version) {
  return Part(RunOf(segment).weights.at[version % 2]->floats(), segment);
}

std::span<float> WeightsStore::m(uint32_t segment) {
  return options_.keeps_m ? Part(RunOf(segment).m.floats(), segment) : std::span<float>();
}

std::span<float> WeightsStore::v(uint32_t segment) {
  return options_.keeps_v ? Part(RunOf(segment).v.floats(), segment) : std::span<float>();
}

Lease WeightsStore::LeaseWeights(uint32_t segment, uint64_t version) {
  const std::span<float> now = weights(segment, version);
  if (!options_.one_copy) return LeaseOf(RunOf(segment).weights.at[version % 2], now);
  auto copy = std::make_shared<AlignedBuffer>(now.size_bytes());
  std::copy(now.begin(), now.end(), copy->floats().begin());
  const std::span<const float> floats = std::as_const(*copy).floats();
  return Lease(std::move(copy), floats);
}

void WeightsStore::Start() {
  if (!options_.bf16_pulls || options_.one_copy) return;
  const uint64_t start = options_.start_version;
  for (Run& run : runs_) {
    run.rounded.at[start % 2] = options_.new_buffer(run.elements() * sizeof(kernels::Bf16));
    run.rounded.version[start % 2] = start;
    kernels::Bf16FromFloat(run.weights.at[start % 2]->floats().data(),
                           Halves(*run.rounded.at[start % 2]).data(),
                           static_cast<int64_t>(run.elements()));
  }
}

AlignedBuffer& WeightsStore::Writable(Copies& copies, uint64_t version, size_t size_bytes) {
  std::shared_ptr<AlignedBuffer>& copy = copies.at[version % 2];
  if (copy == nullptr || copies.version[version % 2] != version) {
    if (copy == nullptr || !IsOnlyOwner(copy)) copy = options_.new_buffer(size_bytes);
    copies.version[version % 2] = version;
  }
  return *copy;
}

AlignedBuffer& WeightsStore::WritableInPlace(Copies& copies, uint64_t version, size_t size_bytes) {
  std::shared_ptr<AlignedBuffer>& copy = copies.at[version % 2];
  if (copy == nullptr || copies.version[version % 2] != version) {
    std::shared_ptr<AlignedBuffer>& current = copies.at[(version - 1) % 2];
    copy = nullptr;  // it may be `current`
    copy = IsOnlyOwner(current) ? current : std::make_shared<AlignedBuffer>(size_bytes);
    copies.version[version % 2] = version;
  }
  return *copy;
}

WeightsStore::Update WeightsStore::BeginUpdate(uint32_t segment, uint64_t version) {
  Run& run = RunOf(segment);
  if (options_.one_copy) {
    const std::span<float> now = weights(segment, version);
    return {.weights_in = now, .weights_out = now, .m = m(segment), .v = v(segment)};
  }
  if (version + 1 > run.newest) {
    TUG_CHECK_EQ(run.at_newest, run.segments) << "segment " << segment;
    run.newest = version + 1;
    run.at_newest = 0;
  }
  ++run.at_newest;
  Update update;
  update.weights_in = weights(segment, version);
  update.m = m(segment);
  update.v = v(segment);
  const size_t size_bytes = run.elements() * sizeof(float);
  if (!options_.bf16_pulls) {
    update.weights_out = Part(Writable(run.weights, version + 1, size_bytes).floats(), segment);
    return update;
  }
  update.weights_out =
      Part(WritableInPlace(run.weights, version + 1, size_bytes).floats(), segment);
  update.bf16_out = Part(
      Halves(Writable(run.rounded, version + 1, run.elements() * sizeof(kernels::Bf16))), segment);
  return update;
}

void WeightsStore::CopyWeights(const Update& update) {
  if (update.weights_in.data() != update.weights_out.data()) {
    std::copy(update.weights_in.begin(), update.weights_in.end(), update.weights_out.begin());
  }
  if (!update.bf16_out.empty()) {
    kernels::Bf16FromFloat(update.weights_out.data(), update.bf16_out.data(),
                           static_cast<int64_t>(update.bf16_out.size()));
  }
}

bool WeightsStore::RunIsAt(uint32_t segment, uint64_t version) const {
  const Run& run = RunOf(segment);
  return version < run.newest || (version == run.newest && run.at_newest == run.segments);
}

std::optional<Lease> WeightsStore::ReadRuns(std::span<const float> floats,
                                            std::span<const kernels::Bf16> rounded,
                                            std::span<const std::byte> list) {
  const std::optional<EncodedRuns> wanted =
      DecodeRuns(list, std::max(floats.size(), rounded.size()), /*with_values=*/false);
  if (!wanted.has_value()) return std::nullopt;  // changed by who asks, in their memory
  if (floats.empty()) {
    widened_.resize(rounded.size());
    for (const ElementRun& run : wanted->runs) {
      kernels::FloatFromBf16(rounded.data() + run.begin, widened_.data() + run.begin,
                             run.end - run.begin);
    }
    floats = widened_;
  }
  const uint64_t size_bytes = EncodedBytes(wanted->runs, /*with_values=*/true);
  SendBuffers::Payload payload = send_buffers_.Take(size_bytes);
  EncodeRuns(wanted->runs, floats, payload.bytes);
  return std::move(payload.lease);
}

Lease WeightsStore::ReadCopy(std::span<const float> floats, Codec codec) {
  if (codec == Codec::kBf16) {
    SendBuffers::Payload payload = send_buffers_.Take(floats.size() * sizeof(kernels::Bf16));
    kernels::Bf16FromFloat(floats.data(), reinterpret_cast<kernels::Bf16*>(payload.bytes.data()),
                           static_cast<int64_t>(floats.size()));
    return std::move(payload.lease);
  }
  SendBuffers::Payload payload = send_buffers_.Take(floats.size_bytes());
  std::memcpy(payload.bytes.data(), floats.data(), floats.size_bytes());
  return std::move(payload.lease);
}

std::optional<Lease> WeightsStore::Read(uint32_t first, uint32_t count, uint64_t version,
                                        bool newest, Codec codec, std::span<const std::byte> runs) {
  const Run& run = RunOf(first);
  const uint64_t begin = table_.segment(first).begin - run.begin;
  const uint64_t elements = table_.segment(first + count - 1).end - table_.segment(first).begin;
  if (options_.one_copy) {
    const std::span<const float> now =
        std::as_const(*run.weights.at[0]).floats().subspan(begin, elements);
    if (codec != Codec::kRuns) return ReadCopy(now, codec);
    if (!options_.bf16_pulls) return ReadRuns(now, {}, runs);
    rounded_.resize(elements);
    kernels::Bf16FromFloat(now.data(), rounded_.data(), static_cast<int64_t>(elements));
    return ReadRuns({}, rounded_, runs);
  }
  const bool use_bf16 = options_.bf16_pulls && codec != Codec::kNone;
  const std::shared_ptr<AlignedBuffer>* copy =
      use_bf16 ? run.rounded.Find(version) : run.weights.Find(version);
  // Weights updated in place are those of a later version by now.
  if (copy == nullptr || (options_.bf16_pulls && !use_bf16 && !newest)) return std::nullopt;
  if (use_bf16) {
    const std::span<const kernels::Bf16> part = Halves(**copy).subspan(begin, elements);
    return codec == Codec::kRuns ? ReadRuns({}, part, runs) : LeaseOf(*copy, part);
  }
  const std::span<const float> part = std::as_const(**copy).floats().subspan(begin, elements);
  if (codec == Codec::kRuns) return ReadRuns(part, {}, runs);
  if (codec == Codec::kNone && !options_.bf16_pulls) return LeaseOf(*copy, part);
  return ReadCopy(part, codec);
}

}  // namespace tug
