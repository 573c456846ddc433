// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_SHUFFLE_H_
#define TUG_DATA_SHUFFLE_H_

#include <cstdint>

namespace tug {

// A pseudo-random permutation of 0 .. size - 1 without a table: any entry in O(1) time and memory.
// A function of (size, seed, epoch). Immutable, hence thread-safe.
//
// Algorithm: a balanced Feistel network over the smallest even number of bits that holds size - 1,
// with Philox as its round function (a bijection of the 2^bits numbers for any round function),
// then cycle walking: a result not below `size` goes through the network again (a bijection of the
// numbers below size; fewer than 4 passes on average). Source: Black and Rogaway 2002, "Ciphers
// with arbitrary finite domains", methods 2 and 3.
class Shuffle {
 public:
  // REQUIRES: 1 <= size <= 2^62.
  Shuffle(uint64_t size, uint64_t seed, uint64_t epoch);

  // REQUIRES: index < size.
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t Network(uint64_t value) const;

  uint64_t size_;
  uint64_t seed_;
  uint64_t epoch_;
  int half_bits_;
};

// Pseudo-random number below `bound` for an epoch. REQUIRES: bound >= 1.
uint64_t EpochOffset(uint64_t bound, uint64_t seed, uint64_t epoch);

}  // namespace tug

#endif  // TUG_DATA_SHUFFLE_H_
