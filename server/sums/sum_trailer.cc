// SPDX-License-Identifier: Apache-2.0
#include "server/sums/sum_trailer.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace tug {
namespace {

constexpr uint32_t kTokenBits = 64;
constexpr uint32_t kRankElements = 2;
constexpr uint32_t kRankDigit = 256;

// All integers up to 2^bits are exact in the type.
uint32_t IntegerBits(ElementType type) {
  switch (type) {
    case ElementType::kFp32:
      return 24;
    case ElementType::kBf16:
      return 8;
    case ElementType::kFp16:
      return 11;
  }
  return 8;
}

// Bits per digit, so that `world` times the largest digit is at most 2^IntegerBits.
uint32_t DigitBits(ElementType type, uint32_t world) {
  TUG_CHECK(world >= 1 && world <= kMaxTrailerRanks);
  const auto world_bits = static_cast<uint32_t>(std::bit_width(world - 1));
  return std::max(1u, IntegerBits(type) - world_bits);
}

uint32_t Digits(ElementType type, uint32_t world) {
  const uint32_t bits = DigitBits(type, world);
  return (kTokenBits + bits - 1) / bits;
}

}  // namespace

uint64_t TrailerElements(ElementType type, uint32_t world) {
  return Digits(type, world) + uint64_t{kRankElements} * world;
}

void WriteTrailer(const SumFacts& facts, ElementType type, uint32_t rank, uint32_t world,
                  std::span<float> trailer) {
  TUG_CHECK_EQ(trailer.size(), TrailerElements(type, world));
  const uint32_t bits = DigitBits(type, world);
  const uint32_t digits = Digits(type, world);
  std::fill(trailer.begin(), trailer.end(), 0.0f);
  for (uint32_t d = 0; d < digits; ++d) {
    const uint64_t digit = (facts.tokens >> (d * bits)) & ((uint64_t{1} << bits) - 1);
    trailer[d] = static_cast<float>(digit);
  }
  if (facts.bad_virtual_worker == SumFacts::kAllFinite) return;
  TUG_CHECK_LT(facts.bad_virtual_worker, kMaxTrailerVirtualWorkers);
  const uint32_t number = facts.bad_virtual_worker + 1;
  trailer[digits + kRankElements * rank] = static_cast<float>(number % kRankDigit);
  trailer[digits + kRankElements * rank + 1] = static_cast<float>(number / kRankDigit);
}

SumFacts ReadTrailer(ElementType type, uint32_t world, std::span<const float> trailer) {
  TUG_CHECK_EQ(trailer.size(), TrailerElements(type, world));
  const uint32_t bits = DigitBits(type, world);
  const uint32_t digits = Digits(type, world);
  SumFacts facts;
  for (uint32_t d = 0; d < digits; ++d) {
    facts.tokens += static_cast<uint64_t>(trailer[d]) << (d * bits);
  }
  for (uint32_t rank = 0; rank < world; ++rank) {
    const float* of_rank = &trailer[digits + kRankElements * rank];
    const uint32_t number =
        static_cast<uint32_t>(of_rank[0]) + kRankDigit * static_cast<uint32_t>(of_rank[1]);
    if (number > 0) facts.bad_virtual_worker = std::min(facts.bad_virtual_worker, number - 1);
  }
  return facts;
}

}  // namespace tug
