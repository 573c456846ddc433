// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SUMS_LEAF_SET_H_
#define TUG_SERVER_SUMS_LEAF_SET_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace tug {

// A subset of the leaves of a sum tree, one bit each. Up to 128 leaves are stored in place: a lane
// reads the set at every push, and with many small segments a cache miss would dominate. Not
// thread-safe.
class LeafSet {
 public:
  explicit LeafSet(uint32_t leaves) : words_((leaves + kBits - 1) / kBits, 0) {}

  void Add(uint32_t first, uint32_t count) {
    for (Part part(first, count); part.left > 0; part.Next()) words_[part.word] |= part.mask();
  }
  bool HasAny(uint32_t first, uint32_t count) const {
    for (Part part(first, count); part.left > 0; part.Next()) {
      if ((words_[part.word] & part.mask()) != 0) return true;
    }
    return false;
  }
  // Counts the leaves in [first, first + count).
  uint32_t Count(uint32_t first, uint32_t count) const {
    uint32_t sum = 0;
    for (Part part(first, count); part.left > 0; part.Next()) {
      sum += static_cast<uint32_t>(std::popcount(words_[part.word] & part.mask()));
    }
    return sum;
  }
  void Clear() { std::fill(words_.begin(), words_.end(), 0); }

 private:
  static constexpr uint32_t kBits = 64;

  // Iterates over the words of a range.
  struct Part {
    Part(uint32_t first, uint32_t count) : word(first / kBits), bit(first % kBits), left(count) {}
    uint32_t bits() const { return std::min(left, kBits - bit); }
    uint64_t mask() const { return (~uint64_t{0} >> (kBits - bits())) << bit; }
    void Next() {
      left -= bits();
      bit = 0;
      ++word;
    }

    uint32_t word;
    uint32_t bit;
    uint32_t left;
  };

  absl::InlinedVector<uint64_t, 2> words_;
};

}  // namespace tug

#endif  // TUG_SERVER_SUMS_LEAF_SET_H_
