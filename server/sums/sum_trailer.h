// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SUMS_SUM_TRAILER_H_
#define TUG_SERVER_SUMS_SUM_TRAILER_H_

// Facts that lanes must know of each other's sums of a segment (`exchange: ALL_REDUCE`): the number
// of tokens, and the virtual worker whose gradient is not finite. They follow the elements of the
// sum in the same collective, as numbers whose sum over ranks is exact in the collective's format:
//
//  - the tokens as digits, lowest first, small enough that `world` of them add up to an integer
//    that the format represents (2^24 in FP32, 2^11 in FP16, 2^8 in bf16);
//  - two numbers per rank, which only that rank's lane sets, so nothing is added to them: the first
//    virtual worker with a non-finite gradient, plus one, in two digits of 8 bits.

#include <cstdint>
#include <span>

#include "collective/element_type.h"

namespace tug {

struct SumFacts {
  static constexpr uint32_t kAllFinite = 0xffffffffu;

  uint64_t tokens = 0;
  uint32_t bad_virtual_worker = kAllFinite;  // the first whose gradient is not finite

  friend bool operator==(const SumFacts&, const SumFacts&) = default;
};

inline constexpr uint32_t kMaxTrailerRanks = 256;
inline constexpr uint32_t kMaxTrailerVirtualWorkers = 65535;

// All functions: pure. REQUIRES: 1 <= world <= kMaxTrailerRanks.

// Number of elements of a trailer.
uint64_t TrailerElements(ElementType type, uint32_t world);
// REQUIRES: rank < world; a virtual worker, if any, below kMaxTrailerVirtualWorkers; `trailer` has
// TrailerElements.
void WriteTrailer(const SumFacts& facts, ElementType type, uint32_t rank, uint32_t world,
                  std::span<float> trailer);
// Reads the sum of the ranks' trailers: all tokens, and the first such virtual worker of all.
SumFacts ReadTrailer(ElementType type, uint32_t world, std::span<const float> trailer);

}  // namespace tug

#endif  // TUG_SERVER_SUMS_SUM_TRAILER_H_
