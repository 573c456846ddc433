#ifndef TUG_SERVER_SUM_TRAILER_H_
#define TUG_SERVER_SUM_TRAILER_H_

// What lanes have to know of each other's sums of a segment (`exchange: ALL_REDUCE`): how many
// tokens they are of, and whose gradient is not finite. It travels behind the elements of the sum,
// in the same collective, as numbers whose sum over ranks is exact in the collective's format:
//
//  - the tokens as digits, lowest first, so small that `world` of them add up to an integer that
//    the format has (2^24 in FP32, 2^11 in FP16, 2^8 in bf16);
//  - by rank, two numbers that only that rank's lane fills in, so nothing is added to them: the
//    first virtual worker whose gradient is not finite, plus one, in two digits of 8 bits.

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

inline constexpr uint32_t kMostTrailerRanks = 256;
inline constexpr uint32_t kMostTrailerVirtualWorkers = 65535;

// All functions: pure. REQUIRES: 1 <= world <= kMostTrailerRanks.

// Numbers of a trailer.
uint64_t TrailerElements(ElementType type, uint32_t world);
// REQUIRES: rank < world; a virtual worker below kMostTrailerVirtualWorkers, if any; so many
// elements.
void WriteTrailer(const SumFacts& facts, ElementType type, uint32_t rank, uint32_t world,
                  std::span<float> trailer);
// Of the sum of the ranks' trailers: all tokens, and the first virtual worker of all.
SumFacts ReadTrailer(ElementType type, uint32_t world, std::span<const float> trailer);

}  // namespace tug

#endif  // TUG_SERVER_SUM_TRAILER_H_
