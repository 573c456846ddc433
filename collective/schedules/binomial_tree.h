// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_BINOMIAL_TREE_H_
#define TUG_COLLECTIVE_SCHEDULES_BINOMIAL_TREE_H_

// Reduce and broadcast along a binomial tree (Thakur, Rabenseifner and Gropp 2005). Ranks are
// numbered relative to the root, v = rank - root. From the root outwards, in the round with
// distance d = 2^(L-1), ..., 2, 1 (L = ceil(log2 N)) every v that is a multiple of 2d serves v + d,
// if it exists; towards the root the same pairs in the opposite order.
//
// L rounds; the root sends or receives L S bytes.

#include <cstdint>
#include <vector>

#include "collective/schedules/schedule.h"

namespace tug {

// The ranks of one host among others (hierarchical.h): first, ..., first + count - 1; the first is
// the root. REQUIRES: count <= 2^rounds.
struct TreeRanks {
  uint32_t first = 0;
  uint32_t count = 1;
  uint32_t rounds = 0;
};
// Each appends `rounds` steps of all parts.
void AppendBinomialReduce(const TreeRanks& group, uint32_t rank, uint32_t parts,
                          std::vector<Step>& steps);
void AppendBinomialBroadcast(const TreeRanks& group, uint32_t rank, uint32_t parts,
                             std::vector<Step>& steps);
// ceil(log2 count).
uint32_t BinomialRounds(uint32_t count);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_BINOMIAL_TREE_H_
