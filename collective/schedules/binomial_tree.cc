// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/binomial_tree.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"

namespace tug {
namespace {

// One rank's role in a round, with ranks numbered relative to the root: it serves a child, is
// served by its parent, or is idle.
struct Round {
  enum { kIdle, kParent, kChild } role = kIdle;
  uint32_t peer = 0;     // relative to the root
  uint32_t subtree = 0;  // of the child: [subtree, subtree_end)
  uint32_t subtree_end = 0;
};

Round RoundOf(uint32_t v, uint32_t count, uint32_t distance) {
  if (v % (2 * distance) == 0 && v + distance < count) {
    return {Round::kParent, v + distance, v + distance, std::min(v + 2 * distance, count)};
  }
  if (v % (2 * distance) == distance) {
    return {Round::kChild, v - distance, v, std::min(v + distance, count)};
  }
  return {};
}

// A tree over the ranks first + (root + v) mod count.
struct Tree {
  uint32_t first;
  uint32_t count;
  uint32_t root;

  uint32_t RankOf(uint32_t v) const { return first + (root + v) % count; }
  uint32_t Own(uint32_t rank) const { return (rank - first + count - root) % count; }
};

using PartsOf = std::function<void(const Round&, Transfer, std::vector<Transfer>&)>;

// Appends `rounds` rounds from the root outwards.
void AppendOutwards(const Tree& tree, uint32_t rank, uint32_t rounds, const PartsOf& add,
                    std::vector<Step>& steps) {
  for (uint32_t left = rounds; left > 0; --left) {
    Step& step = steps.emplace_back();
    const Round round = RoundOf(tree.Own(rank), tree.count, 1u << (left - 1));
    const Transfer transfer{.peer = tree.RankOf(round.peer)};
    if (round.role == Round::kParent) add(round, transfer, step.sends);
    if (round.role == Round::kChild) add(round, transfer, step.receives);
  }
}

// Appends the same rounds reversed, in order and direction.
void AppendInwards(const Tree& tree, uint32_t rank, uint32_t rounds, bool reduces,
                   const PartsOf& add, std::vector<Step>& steps) {
  std::vector<Step> outwards;
  AppendOutwards(tree, rank, rounds, add, outwards);
  for (auto step = outwards.rbegin(); step != outwards.rend(); ++step) {
    for (Transfer& receive : step->sends) receive.reduces = reduces;
    steps.push_back({step->receives, step->sends});
  }
}

PartsOf AllParts(uint32_t parts) {
  return [parts](const Round&, Transfer transfer, std::vector<Transfer>& out) {
    transfer.end = parts;
    out.push_back(transfer);
  };
}

// Parts of the subtree's ranks; two transfers if the subtree wraps from the last rank to rank 0.
PartsOf OwnParts(const Tree& tree) {
  return [tree](const Round& round, Transfer transfer, std::vector<Transfer>& out) {
    const uint32_t begin = tree.RankOf(round.subtree);
    const uint32_t end = begin + round.subtree_end - round.subtree;
    transfer.begin = begin;
    transfer.end = std::min(end, tree.count);
    out.push_back(transfer);
    if (end <= tree.count) return;
    transfer.begin = 0;
    transfer.end = end - tree.count;
    out.push_back(transfer);
  };
}

}  // namespace

CollectiveSchedule BinomialBroadcast(uint32_t rank, uint32_t world, uint32_t root) {
  TUG_CHECK(rank < world && root < world);
  const Tree tree{0, world, root};
  CollectiveSchedule schedule{.takes_turns = true};
  AppendOutwards(tree, rank, BinomialRounds(world), AllParts(1), schedule.steps);
  return schedule;
}

CollectiveSchedule BinomialReduce(uint32_t rank, uint32_t world, uint32_t root) {
  TUG_CHECK(rank < world && root < world);
  const Tree tree{0, world, root};
  CollectiveSchedule schedule{.takes_turns = true};
  AppendInwards(tree, rank, BinomialRounds(world), true, AllParts(1), schedule.steps);
  return schedule;
}

CollectiveSchedule BinomialScatter(uint32_t rank, uint32_t world, uint32_t root) {
  TUG_CHECK(rank < world && root < world);
  const Tree tree{0, world, root};
  CollectiveSchedule schedule{.parts = world, .takes_turns = true};
  AppendOutwards(tree, rank, BinomialRounds(world), OwnParts(tree), schedule.steps);
  return schedule;
}

CollectiveSchedule BinomialGather(uint32_t rank, uint32_t world, uint32_t root) {
  TUG_CHECK(rank < world && root < world);
  const Tree tree{0, world, root};
  CollectiveSchedule schedule{.parts = world, .takes_turns = true};
  AppendInwards(tree, rank, BinomialRounds(world), false, OwnParts(tree), schedule.steps);
  return schedule;
}

double BinomialBroadcastSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  return BinomialRounds(world) * SendSeconds(link, static_cast<double>(bytes));
}

double BinomialReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  return BinomialRounds(world) * ReduceSeconds(link, static_cast<double>(bytes));
}

double BinomialScatterSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  return BinomialRounds(world) * link.alpha +
         (world - 1) * link.beta * static_cast<double>(bytes) / world;
}

double BinomialGatherSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  return BinomialScatterSeconds(link, world, bytes);
}

void AppendBinomialReduce(const TreeRanks& group, uint32_t rank, uint32_t parts,
                          std::vector<Step>& steps) {
  const Tree tree{group.first, group.count, 0};
  AppendInwards(tree, rank, group.rounds, true, AllParts(parts), steps);
}

void AppendBinomialBroadcast(const TreeRanks& group, uint32_t rank, uint32_t parts,
                             std::vector<Step>& steps) {
  const Tree tree{group.first, group.count, 0};
  AppendOutwards(tree, rank, group.rounds, AllParts(parts), steps);
}

uint32_t BinomialRounds(uint32_t count) {
  TUG_CHECK(count > 0);
  return static_cast<uint32_t>(std::bit_width(count - 1));
}

}  // namespace tug
