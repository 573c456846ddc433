// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_PHILOX_H_
#define TUG_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace tug {

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9u;
inline constexpr uint32_t kPhiloxKeyStep1 = 0xBB67AE85u;

// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). A pure function of (counter, key), so any element of any stream is computed
// without the ones before it. Thread-safe. Matches the Random123 known-answer vectors.
inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxMultiplier0} * counter[0];
    const uint64_t p1 = uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += kPhiloxKeyStep0;
    key[1] += kPhiloxKeyStep1;
  }
  return counter;
}

// Uniform in (0, 1) with 23 bits, never 0 or 1 (a 24th would round the largest up to 1).
inline float UniformFromBits(uint32_t bits) {
  return (static_cast<float>(bits >> 9) + 0.5f) * (1.0f / 8388608.0f);
}

// Purpose of a stream, in the top bits of its key: streams of different purposes never overlap.
enum class RandomPurpose : uint32_t {
  kInit = 1,
  kDropout = 2,
  kShuffle = 3,
  kSample = 4,
  kRandomData = 5,
  kStraggle = 6,
  kDither = 7
};

}  // namespace tug

#endif  // TUG_BASE_PHILOX_H_
