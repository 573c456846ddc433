// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_SPARSE_SORTED_INDICES_H_
#define TUG_COMPRESSION_SPARSE_SORTED_INDICES_H_

// Indices of the elements in a sparse encoding, ascending: Elias-Fano code (Elias 1974, "Efficient
// storage and retrieval by content and address of static files"). First the low r bits of every
// index, one after the other, padded to a whole byte; then in 64-bit words a row of bits: the i-th
// one is at place i + (index >> r). With 2^r just below elements / count that is within half a bit
// per index of what any code needs: 8.6 bits at a density of 1%. The length is a function of
// (elements, count). Little-endian.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "compression/dense/unaligned.h"

namespace tug {

// REQUIRES: 1 <= elements <= 2^24, count <= elements. Pure.
size_t SortedIndicesBytes(size_t elements, size_t count);
// Upper bound for `count` indices or fewer.
size_t MaxSortedIndicesBytes(size_t elements, size_t count);

// Bytes of the number of indices, which precedes them.
inline constexpr size_t kCountBytes = sizeof(uint32_t);

// Writes SortedIndicesBytes to `out`. REQUIRES: ascending, each below `elements`.
void PackSortedIndices(std::span<const uint32_t> indices, size_t elements, std::byte* out);

// Reads indices one after the other. The bytes come from outside and may change meanwhile: whatever
// they are, the results ascend and are below `elements`. Not thread-safe.
class SortedIndexReader {
 public:
  // `packed` has SortedIndicesBytes, and 4 bytes after them are readable; it must outlive the
  // reader. REQUIRES: as SortedIndicesBytes.
  SortedIndexReader(const std::byte* packed, size_t elements, size_t count);

  // Nothing: malformed. REQUIRES: called at most `count` times.
  std::optional<uint32_t> Next() {
    while (word_ == 0) {
      if (next_word_ == end_) return std::nullopt;
      word_ = LoadOnce<uint64_t>(next_word_);
      next_word_ += sizeof(uint64_t);
      place_ += 64;
    }
    const uint64_t high = place_ + static_cast<uint64_t>(std::countr_zero(word_)) - taken_;
    word_ &= word_ - 1;
    const uint64_t bit = taken_ * low_bits_;
    const uint32_t low = LoadOnce<uint32_t>(low_ + bit / 8) >> (bit % 8) & low_mask_;
    ++taken_;
    const uint64_t index = high << low_bits_ | low;
    if (index < least_ || index >= elements_) return std::nullopt;
    least_ = index + 1;
    return static_cast<uint32_t>(index);
  }
  // Whether no set bit is left.
  bool AtEnd() {
    while (word_ == 0 && next_word_ != end_) {
      word_ = LoadOnce<uint64_t>(next_word_);
      next_word_ += sizeof(uint64_t);
    }
    return word_ == 0;
  }

 private:
  const std::byte* const low_;
  const uint64_t elements_;
  const uint32_t low_bits_;
  const uint32_t low_mask_;
  const std::byte* next_word_;
  const std::byte* const end_;
  uint64_t word_ = 0;                            // unread bits of the current word
  uint64_t place_ = static_cast<uint64_t>(-64);  // of its first bit
  uint64_t taken_ = 0;
  uint64_t least_ = 0;  // lower bound of the next index
};

}  // namespace tug

#endif  // TUG_COMPRESSION_SPARSE_SORTED_INDICES_H_
