// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/dgc.h"

#include <algorithm>
#include <cmath>

#include "compression/residual.h"
#include "compression/sparse/select_top.h"
#include "compression/sparse/sparse.h"
#include "compression/sparse/sparse_values.h"

namespace tug {
namespace {

constexpr double kFirstDensity = 0.25;

// base^(numerator / denominator), by repeated square roots, which are exact to the last bit on
// every machine; std::pow need not be. REQUIRES: numerator < denominator < 2^32.
double Power(double base, uint64_t numerator, uint64_t denominator) {
  const uint64_t exponent = (numerator << 32) / denominator;  // in units of 2^-32
  double power = 1;
  for (int bit = 31; bit >= 0; --bit) {
    base = std::sqrt(base);
    if ((exponent >> bit & 1) != 0) power *= base;
  }
  return power;
}

}  // namespace

DgcSegmentCodec::DgcSegmentCodec(const PushCodecConfig& config)
    : density_(config.dgc().density()),
      momentum_(static_cast<float>(config.dgc().momentum())),
      first_clock_(config.warmup_steps()),
      fall_steps_(density_ < kFirstDensity ? config.dgc().density_warmup_steps() : 0) {}

double DgcSegmentCodec::DensityAt(uint64_t clock) const {
  const uint64_t step = clock - std::min(clock, first_clock_);
  if (step >= fall_steps_) return density_;
  return kFirstDensity * Power(density_ / kFirstDensity, step, fall_steps_);
}

size_t DgcSegmentCodec::MaxEncodedBytes(size_t elements) const {
  const double most = fall_steps_ > 0 ? kFirstDensity : density_;
  const size_t count = MostAbout(KeptElements(most, elements));
  return MaxSparseValuesBytes(elements, std::min(count, elements));
}

size_t DgcSegmentCodec::Encode(const CodecKey& key, std::span<const float> elements,
                               std::span<std::byte> out, CodecScratch& scratch) const {
  const size_t count = KeptElements(DensityAt(key.clock), elements.size());
  const auto top = SelectAbout(elements, count, scratch);
  return top.has_value() ? WriteSparseValues(elements, *top, out.data()) : 0;
}

size_t DgcSegmentCodec::EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                                           std::span<float> residual, std::span<std::byte> out,
                                           CodecScratch& scratch) const {
  const size_t n = elements.size();
  const size_t count = KeptElements(DensityAt(key.clock), n);
  size_t bytes = 0;
  const auto encode = [&] {
    const auto velocity = residual.subspan(n);
    const auto sum = residual.first(n);
    const auto top = AccumulateAndSelectAbout(elements, momentum_, velocity, sum, count, scratch);
    if (!top.has_value()) return false;
    bytes = WriteSparseValues(sum, *top, out.data());
    for (const uint32_t index : *top) sum[index] = velocity[index] = 0.0f;
    return true;
  };
  EncodeSum(elements, residual, encode, StateFloats(n));
  return bytes;
}

bool DgcSegmentCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                             std::span<float> elements) const {
  return DecodeSparseValues(encoded, to, elements);
}

}  // namespace tug
