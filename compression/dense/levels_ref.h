// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_LEVELS_REF_H_
#define TUG_COMPRESSION_DENSE_LEVELS_REF_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/dense/dense_test_support.h"

namespace tug {

// Reference for levels-inl.h. `key`: of the random draws; null: rounds to nearest.
inline std::vector<std::byte> EncodeLevelsRef(std::span<const float> x, size_t group, int bits,
                                              const CodecKey* key) {
  std::vector<std::byte> out;
  const auto append = [&](const auto& value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), bytes, bytes + sizeof(value));
  };
  const auto levels = static_cast<float>((1 << bits) - 1);
  float norm = 0;
  std::vector<uint64_t> words(static_cast<size_t>(bits) + 1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % group == 0) {
      norm = 0;
      for (const float value : x.subspan(i, std::min(group, x.size() - i))) {
        norm = std::max(norm, std::abs(value));
      }
      append(norm);
    }
    const float scaled = norm == 0 ? 0.0f : std::abs(x[i]) / norm * levels;
    float level = std::nearbyint(scaled);
    if (key != nullptr) {
      level = std::floor(scaled);
      if (static_cast<float>(DrawRef(*key, i) >> 8) * 0x1p-24f < scaled - level) level += 1;
    }
    for (int k = 0; k < bits; ++k) {
      words[k] |= (static_cast<uint64_t>(level) >> k & 1) << (i % 64);
    }
    words[bits] |= uint64_t{std::signbit(x[i])} << (i % 64);
    if (i % 64 == 63 || i + 1 == x.size()) {
      for (uint64_t& word : words) {
        append(word);
        word = 0;
      }
    }
  }
  return out;
}

// Largest magnitude of the group of element i.
inline float NormRef(std::span<const float> x, size_t group, size_t i) {
  const size_t at = i / group * group;
  float norm = 0;
  for (const float value : x.subspan(at, std::min(group, x.size() - at))) {
    norm = std::max(norm, std::abs(value));
  }
  return norm;
}

// Expects every element to decode to within `gap` levels of itself.
inline void ExpectDecodesWithin(const SegmentCodec& codec, const std::vector<float>& x,
                                size_t group, int bits, float gap) {
  const auto decoded = Decoded(codec, Encoding(codec, x), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float norm = NormRef(x, group, i);
    const float level = norm / static_cast<float>((1 << bits) - 1);
    ASSERT_LE(std::abs(decoded[i] - x[i]), gap * level + 1e-6f * norm) << i << " of " << x.size();
    ASSERT_LE(std::abs(decoded[i]), norm) << i;
  }
}

// Expects norms that are negative or not finite to be refused. `at`: byte offset of a norm.
inline void ExpectRefusesOtherNorms(const SegmentCodec& codec, const std::vector<float>& x,
                                    size_t at) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> to(x.size());
  for (const float norm : {-1.0f, Limits::infinity(), Limits::quiet_NaN()}) {
    auto encoding = Encoding(codec, x);
    std::copy_n(reinterpret_cast<const std::byte*>(&norm), sizeof(norm), encoding.begin() + at);
    EXPECT_FALSE(codec.Decode(encoding, DecodeTo::kAdd, to)) << norm;
  }
}

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_LEVELS_REF_H_
