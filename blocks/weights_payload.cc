// SPDX-License-Identifier: Apache-2.0
#include "blocks/weights_payload.h"

#include <cstring>

#include "base/check.h"
#include "compression/dense/int8.h"
#include "kernels/bf16.h"
#include "kernels/copy.h"

namespace tug {
namespace {

void DecodeSegment(Codec codec, std::span<const std::byte> payload, std::span<float> weights) {
  const auto n = static_cast<int64_t>(weights.size());
  switch (codec) {
    case Codec::kNone:
      return kernels::CopyForLater(reinterpret_cast<const float*>(payload.data()), weights.data(),
                                   n);
    case Codec::kBf16:
      return kernels::FloatFromBf16(reinterpret_cast<const kernels::Bf16*>(payload.data()),
                                    weights.data(), n);
    case Codec::kInt8:
      return DecodeInt8Weights(payload, weights);
    case Codec::kRuns:
    case Codec::kFrames:
    case Codec::kChanges:
      break;
  }
  TUG_CHECK(false) << "no format of weights";
}

// Calls f with each segment's part of the payload and of the weights; once with all of them if the
// format has only the weights' own bytes in order.
template <typename Payload, typename Weights, typename F>
void ForEachSegment(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count,
                    Payload payload, Weights weights, F f) {
  if (codec != Codec::kInt8) return f(payload, weights);
  for (uint32_t id = first; id < first + count; ++id) {
    const uint64_t elements = table.segment(id).elements();
    const size_t bytes = WeightsBytes(codec, elements);
    f(payload.first(bytes), weights.first(elements));
    payload = payload.subspan(bytes);
    weights = weights.subspan(elements);
  }
}

}  // namespace

Codec WeightsCodecOf(CommConfig::Format pull_format) {
  switch (pull_format) {
    case CommConfig::BF16:
      return Codec::kBf16;
    case CommConfig::INT8:
      return Codec::kInt8;
    case CommConfig::CHANGES:
      return Codec::kChanges;
    default:
      return Codec::kNone;
  }
}

size_t WeightsBytes(Codec codec, uint64_t elements) {
  switch (codec) {
    case Codec::kNone:
      return elements * sizeof(float);
    case Codec::kBf16:
      return elements * sizeof(kernels::Bf16);
    case Codec::kInt8:
      return Int8Bytes(elements);
    case Codec::kRuns:
    case Codec::kFrames:
    case Codec::kChanges:
      break;
  }
  TUG_CHECK(false) << "no format of weights";
  return 0;
}

void EncodeWeights(Codec codec, std::span<const float> weights, std::span<std::byte> out) {
  TUG_CHECK_EQ(out.size(), WeightsBytes(codec, weights.size()));
  switch (codec) {
    case Codec::kBf16:
      return kernels::Bf16FromFloat(weights.data(), reinterpret_cast<kernels::Bf16*>(out.data()),
                                    static_cast<int64_t>(weights.size()));
    case Codec::kInt8:
      return EncodeInt8Weights(weights, out);
    default:
      std::memcpy(out.data(), weights.data(), out.size());
  }
}

size_t WeightsBytes(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count) {
  size_t bytes = 0;
  for (uint32_t id = first; id < first + count; ++id) {
    bytes += WeightsBytes(codec, table.segment(id).elements());
  }
  return bytes;
}

void EncodeWeights(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count,
                   std::span<const float> weights, std::span<std::byte> out) {
  ForEachSegment(codec, table, first, count, out, weights,
                 [&](std::span<std::byte> to, std::span<const float> from) {
                   EncodeWeights(codec, from, to);
                 });
}

void DecodeWeights(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count,
                   std::span<const std::byte> payload, std::span<float> weights) {
  ForEachSegment(codec, table, first, count, payload, weights,
                 [&](std::span<const std::byte> from, std::span<float> to) {
                   DecodeSegment(codec, from, to);
                 });
}

}  // namespace tug
