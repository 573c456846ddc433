#ifndef TUG_COLLECTIVE_BINOMIAL_TREE_H_
#define TUG_COLLECTIVE_BINOMIAL_TREE_H_

// Broadcast, reduce, scatter and gather along a binomial tree (Thakur, Rabenseifner and Gropp
// 2005). Ranks are counted from the root on, v = (rank - root) mod N. From the root outwards, in
// the round with distance d = 2^(L-1), ..., 2, 1 (L = ceil(log2 N)) every v that is a multiple of
// 2d serves v + d, if there is one; towards the root the same pairs, in the opposite order. So a
// subtree is the ranks from v to v + d - 1.
//
// L rounds. Broadcast and reduce have one part, and the root sends or receives L S bytes; scatter
// and gather have N, all of a subtree's at once, and the root's are (N - 1) / N S bytes.

#include <cstdint>
#include <vector>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

// All end with what the root has.
CollectiveSchedule BinomialBroadcast(uint32_t rank, uint32_t world, uint32_t root);
// The root ends with the sum; the others' buffers are scratch.
CollectiveSchedule BinomialReduce(uint32_t rank, uint32_t world, uint32_t root);
// Rank r ends with the root's part r; other parts are scratch.
CollectiveSchedule BinomialScatter(uint32_t rank, uint32_t world, uint32_t root);
// The root ends with part r of rank r; of the others, parts not their own are scratch.
CollectiveSchedule BinomialGather(uint32_t rank, uint32_t world, uint32_t root);

// L (alpha + S beta).
double BinomialBroadcastSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// L (alpha + S (beta + gamma)).
double BinomialReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// L alpha + (N - 1) / N S beta, with root 0; with another, the subtree that goes on from rank N - 1
// to rank 0 is a message more in its round.
double BinomialScatterSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
double BinomialGatherSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

// For the ranks of one host among others (hierarchical.h): ranks first, ..., first + count - 1, of
// which the first is the root. REQUIRES: count <= 2^rounds.
struct TreeRanks {
  uint32_t first = 0;
  uint32_t count = 1;
  uint32_t rounds = 0;
};
// `rounds` steps each, of all of the parts.
void AppendBinomialReduce(const TreeRanks& group, uint32_t rank, uint32_t parts,
                          std::vector<Step>& steps);
void AppendBinomialBroadcast(const TreeRanks& group, uint32_t rank, uint32_t parts,
                             std::vector<Step>& steps);
// ceil(log2 count).
uint32_t BinomialRounds(uint32_t count);

}  // namespace tug

#endif  // TUG_COLLECTIVE_BINOMIAL_TREE_H_
