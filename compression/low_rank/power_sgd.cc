// SPDX-License-Identifier: Apache-2.0
#include "compression/low_rank/power_sgd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compression/dense/dither.h"
#include "compression/dense/fp32.h"
#include "compression/dense/unaligned.h"
#include "compression/residual.h"
#include "kernels/sum.h"

namespace tug {
namespace {

constexpr size_t kHeadBytes = 2 * sizeof(uint32_t);
constexpr int64_t kMaxRank = 64;
constexpr int64_t kMinColumns = 2;
constexpr int64_t kMaxColumns = 65536;
constexpr int32_t kInfinityBits = 0x7F800000;
constexpr int kMaxExponent = 126;  // of a normal power of two whose inverse is normal too
// Exponent of a largest magnitude below which no sum of M's elements squared, and no product,
// overflows.
constexpr int kSafeExponent = 100;

MatrixShape ShapeOf(size_t elements, int64_t columns) {
  return {static_cast<int64_t>(elements), columns};
}

size_t FactorFloats(const MatrixShape& shape, int64_t rank) {
  return static_cast<size_t>(rank * (shape.rows() + shape.columns));
}

bool IsSmaller(const MatrixShape& shape, int64_t rank) {
  return FactorFloats(shape, rank) < static_cast<size_t>(shape.elements);
}

// Largest rank, up to `rank`, whose factors are smaller than the segment; 0 if there is none.
int64_t RankOf(const MatrixShape& shape, int64_t rank) {
  while (rank > 0 && !IsSmaller(shape, rank)) --rank;
  return rank;
}

size_t EncodedBytes(const MatrixShape& shape, int64_t rank) {
  const size_t floats = rank == 0 ? static_cast<size_t>(shape.elements) : FactorFloats(shape, rank);
  return kHeadBytes + floats * sizeof(float);
}

// Exponent of a finite number; the lowest one for zero and denormals.
int ExponentOf(int32_t bits) { return (bits >> 23) - 127; }

float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// Draws column k of Q, each element from -1 to 1.
void DrawColumn(const Dither& dither, int64_t k, std::span<float> column) {
  const size_t counters = (column.size() + 3) / 4;
  for (size_t four = 0; four < counters; ++four) {
    const auto counter = static_cast<int64_t>(static_cast<size_t>(k) * counters + four);
    const auto words = Philox4x32(dither.Counter(0, counter), dither.philox_key());
    for (size_t i = 4 * four; i < std::min(4 * four + 4, column.size()); ++i) {
      column[i] = static_cast<float>(static_cast<int32_t>(words[i % 4]) >> 7) * 0x1p-24f;
    }
  }
}

// Draws the missing columns of Q.
void Complete(const CodecKey& key, const MatrixShape& shape, std::span<float> q) {
  const Dither dither(key);
  const auto columns = static_cast<size_t>(shape.columns);
  for (size_t at = 0; at < q.size(); at += columns) {
    const auto column = q.subspan(at, columns);
    const float squares = Dot(column.data(), column.data(), shape.columns);
    if (squares > 0.25f && squares < 4.0f) continue;  // has length 1
    DrawColumn(dither, static_cast<int64_t>(at / columns), column);
  }
}

// Scales the columns of Q to length 1; tiny ones become 0.
void Normalise(const MatrixShape& shape, std::span<float> q) {
  constexpr float kMinSquares = 1e-24f;
  const auto columns = static_cast<size_t>(shape.columns);
  for (size_t at = 0; at < q.size(); at += columns) {
    const auto column = q.subspan(at, columns);
    const float squares = Dot(column.data(), column.data(), shape.columns);
    const float inverse = squares >= kMinSquares ? 1 / std::sqrt(squares) : 0.0f;
    for (float& x : column) x *= inverse;
  }
}

void ScaleBy(float factor, std::span<float> x) {
  for (float& value : x) value *= factor;
}

// Whether the encoding error of the elements is finite.
bool LeavesFinite(const SegmentCodec& codec, std::span<const std::byte> encoded,
                  std::span<const float> elements, CodecScratch& scratch) {
  const std::span<std::byte> bytes = scratch.Take(elements.size_bytes());
  const std::span rest(reinterpret_cast<float*>(bytes.data()), elements.size());
  std::copy(elements.begin(), elements.end(), rest.begin());
  return codec.Decode(encoded, DecodeTo::kSubtract, rest) &&
         kernels::AllFinite(rest.data(), static_cast<int64_t>(rest.size()));
}

}  // namespace

PowerSgdSegmentCodec::PowerSgdSegmentCodec(const PushCodecConfig& config)
    : rank_(config.power_sgd().rank()), columns_(config.power_sgd().columns()) {}

size_t PowerSgdSegmentCodec::MaxEncodedBytes(size_t elements) const {
  const MatrixShape shape = ShapeOf(elements, columns_);
  return EncodedBytes(shape, RankOf(shape, rank_));
}

size_t PowerSgdSegmentCodec::StateFloats(size_t elements) const {
  return static_cast<size_t>(RankOf(ShapeOf(elements, columns_), rank_) * columns_);
}

size_t PowerSgdSegmentCodec::EncodeMatrix(const CodecKey& key, std::span<const float> elements,
                                          int32_t largest_bits, std::span<float> warm,
                                          std::span<std::byte> out, CodecScratch& scratch) const {
  if (largest_bits >= kInfinityBits) return 0;
  const MatrixShape shape = ShapeOf(elements.size(), columns_);
  const int64_t rank = RankOf(shape, rank_);
  const uint32_t head[] = {static_cast<uint32_t>(rank), static_cast<uint32_t>(columns_)};
  std::memcpy(out.data(), head, sizeof(head));
  const size_t bytes = EncodedBytes(shape, rank);
  if (rank == 0) {
    std::memcpy(out.data() + kHeadBytes, elements.data(), elements.size_bytes());
    return bytes;
  }
  const auto p_floats = static_cast<size_t>(rank * shape.rows());
  const auto q_floats = static_cast<size_t>(rank * columns_);
  const std::span all(
      reinterpret_cast<float*>(scratch.Take((p_floats + 2 * q_floats) * sizeof(float)).data()),
      p_floats + 2 * q_floats);
  const auto p = all.first(p_floats);
  const auto q = all.subspan(p_floats, q_floats);
  if (largest_bits == 0) {  // gives no information about Q
    std::fill(all.begin(), all.end(), 0.0f);
  } else {
    const auto start = warm.empty() ? all.last(q_floats) : warm;
    if (warm.empty()) std::fill(start.begin(), start.end(), 0.0f);
    Complete(key, shape, start);
    const int exponent = std::clamp(ExponentOf(largest_bits), -kMaxExponent, kMaxExponent);
    const float scale = PowerOfTwo(-exponent);
    TimesFactor(shape, elements.data(), scale, start.data(), rank, p.data());
    Orthonormalise(shape.rows(), rank, p.data());
    TransposedTimesFactor(shape, elements.data(), scale, p.data(), rank, q.data());
    if (!warm.empty()) {
      std::copy(q.begin(), q.end(), warm.begin());
      Normalise(shape, warm);
    }
    ScaleBy(PowerOfTwo(exponent / 2), p);
    ScaleBy(PowerOfTwo(exponent - exponent / 2), q);
  }
  std::memcpy(out.data() + kHeadBytes, all.data(), (p_floats + q_floats) * sizeof(float));
  return bytes;
}

size_t PowerSgdSegmentCodec::Encode(const CodecKey& key, std::span<const float> elements,
                                    std::span<std::byte> out, CodecScratch& scratch) const {
  const auto n = static_cast<int64_t>(elements.size());
  const int32_t largest = LargestMagnitudeBits(elements.data(), n);
  const size_t bytes = EncodeMatrix(key, elements, largest, {}, out, scratch);
  const bool safe = bytes == 0 || ExponentOf(largest) < kSafeExponent;
  return safe || LeavesFinite(*this, out.first(bytes), elements, scratch) ? bytes : 0;
}

size_t PowerSgdSegmentCodec::EncodeWithResidual(const CodecKey& key,
                                                std::span<const float> elements,
                                                std::span<float> residual, std::span<std::byte> out,
                                                CodecScratch& scratch) const {
  const size_t state_floats = StateFloats(elements.size());
  size_t bytes = 0;
  const auto encode = [&] {
    const auto sum = residual.first(elements.size());
    const auto n = static_cast<int64_t>(sum.size());
    const int32_t largest = AddAndLargestBits(elements.data(), sum.data(), n);
    bytes = EncodeMatrix(key, sum, largest, residual.subspan(sum.size()), out, scratch);
    if (bytes == 0 || !Decode(out.first(bytes), DecodeTo::kSubtract, sum)) return false;
    return ExponentOf(largest) < kSafeExponent || kernels::AllFinite(sum.data(), n);
  };
  return EncodeSum(elements, residual, encode, state_floats) ? bytes : 0;
}

bool PowerSgdSegmentCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                                  std::span<float> elements) const {
  if (encoded.size() < kHeadBytes) return false;
  const int64_t rank = LoadOnce<uint32_t>(encoded.data());
  const int64_t columns = LoadOnce<uint32_t>(encoded.data() + sizeof(uint32_t));
  if (rank > kMaxRank || columns < kMinColumns || columns > kMaxColumns) return false;
  const MatrixShape shape = ShapeOf(elements.size(), columns);
  if (rank > 0 && !IsSmaller(shape, rank)) return false;
  if (encoded.size() != EncodedBytes(shape, rank)) return false;
  const auto body = encoded.subspan(kHeadBytes);
  if (rank == 0) return DecodeFp32(body, to, elements);
  const auto* const p = reinterpret_cast<const float*>(body.data());
  return ExpandFactors(shape, p, p + rank * shape.rows(), rank, to, elements.data());
}

}  // namespace tug
