// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_BINOMIAL_TREE_H_
#define TUG_COLLECTIVE_SCHEDULES_BINOMIAL_TREE_H_

// Broadcast, reduce, scatter and gather along a binomial tree (Thakur, Rabenseifner and Gropp
// 2005). Ranks are numbered relative to the root, v = (rank - root) mod N. From the root outwards,
// in the round with distance d = 2^(L-1), ..., 2, 1 (L = ceil(log2 N)) every v that is a multiple
// of 2d serves v + d, if it exists; towards the root the same pairs in the opposite order. So a
// subtree is the ranks v to v + d - 1.
//
// L rounds. Broadcast and reduce have one part, and the root sends or receives L S bytes. Scatter
// and gather have N parts, sent a subtree at a time, and the root sends or receives (N - 1) / N S
// bytes.

#include <cstdint>
#include <vector>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// All ranks end with the root's buffer.
CollectiveSchedule BinomialBroadcast(uint32_t rank, uint32_t world, uint32_t root);
// The root ends with the sum; the others' buffers are scratch.
CollectiveSchedule BinomialReduce(uint32_t rank, uint32_t world, uint32_t root);
// Rank r ends with the root's part r; other parts are scratch.
CollectiveSchedule BinomialScatter(uint32_t rank, uint32_t world, uint32_t root);
// The root ends with part r of rank r; on other ranks, all parts except their own are scratch.
CollectiveSchedule BinomialGather(uint32_t rank, uint32_t world, uint32_t root);

// L (alpha + S beta).
double BinomialBroadcastSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// L (alpha + S (beta + gamma)).
double BinomialReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// L alpha + (N - 1) / N S beta, for root 0. With another root, a subtree that wraps from rank N - 1
// to rank 0 adds a message to its round.
double BinomialScatterSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
double BinomialGatherSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

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
