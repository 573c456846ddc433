// SPDX-License-Identifier: Apache-2.0
#include "data/shuffle.h"

#include <bit>

#include "base/check.h"
#include "base/philox.h"

namespace tug {
namespace {

// Enough rounds for small domains to look shuffled, where a round mixes only a bit or two.
constexpr uint32_t kRounds = 12;
constexpr uint32_t kOffsetRound = 255;  // not the number of any round

// Random bits for one round of one epoch. Counter: (low value bits, round and high epoch bits, low
// epoch bits, high seed bits).
uint64_t Bits(uint64_t value, uint32_t round, uint64_t seed, uint64_t epoch) {
  const auto word =
      Philox4x32({static_cast<uint32_t>(value), round | static_cast<uint32_t>(epoch >> 32) << 8,
                  static_cast<uint32_t>(epoch), static_cast<uint32_t>(seed >> 32)},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(RandomPurpose::kShuffle)});
  return word[0] | uint64_t{word[1]} << 32;
}

}  // namespace

Shuffle::Shuffle(uint64_t size, uint64_t seed, uint64_t epoch)
    : size_(size), seed_(seed), epoch_(epoch), half_bits_((std::bit_width(size - 1) + 1) / 2) {
  TUG_CHECK(size >= 1 && size <= uint64_t{1} << 62) << size;
}

uint64_t Shuffle::operator()(uint64_t index) const {
  TUG_CHECK_LT(index, size_);
  uint64_t value = index;
  do {
    value = Network(value);
  } while (value >= size_);
  return value;
}

uint64_t Shuffle::Network(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint64_t mixed = left ^ (Bits(right, round, seed_, epoch_) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

uint64_t EpochOffset(uint64_t bound, uint64_t seed, uint64_t epoch) {
  TUG_CHECK_GE(bound, uint64_t{1});
  return Bits(0, kOffsetRound, seed, epoch) % bound;
}

}  // namespace tug
