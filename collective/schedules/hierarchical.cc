// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/hierarchical.h"

#include <algorithm>

#include "base/check.h"
#include "collective/schedules/binomial_tree.h"
#include "collective/schedules/ring.h"
#include "collective/schedules/ring_phases.h"

namespace tug {
namespace {

uint32_t Hosts(uint32_t world, uint32_t ranks_per_host) {
  TUG_CHECK(ranks_per_host >= 1);
  return (world - 1) / ranks_per_host + 1;
}

uint32_t RoundsWithin(uint32_t world, uint32_t ranks_per_host) {
  return BinomialRounds(std::min(world, ranks_per_host));
}

}  // namespace

CollectiveSchedule HierarchicalAllReduce(uint32_t rank, uint32_t world, uint32_t ranks_per_host) {
  TUG_CHECK(rank < world);
  const uint32_t hosts = Hosts(world, ranks_per_host);
  const uint32_t host = rank / ranks_per_host;
  const uint32_t leader = host * ranks_per_host;
  const TreeRanks group{leader, std::min(ranks_per_host, world - leader),
                        RoundsWithin(world, ranks_per_host)};
  CollectiveSchedule schedule{.parts = hosts, .takes_turns = true};
  std::vector<Step>& steps = schedule.steps;
  AppendBinomialReduce(group, rank, hosts, steps);
  if (rank == leader) {
    const Ring ring{.stride = ranks_per_host, .count = hosts, .position = host};
    AppendRingReduceScatter(ring, steps);
    AppendRingAllGather(ring, steps);
  } else {
    steps.resize(steps.size() + 2 * (hosts - 1));
  }
  AppendBinomialBroadcast(group, rank, hosts, steps);
  return schedule;
}

double HierarchicalAllReduceSeconds(const LinkCost& between_hosts, const LinkCost& within_host,
                                    uint32_t world, uint32_t ranks_per_host, uint64_t chunk_bytes,
                                    uint64_t bytes) {
  TUG_CHECK(world > 0);
  const double all = static_cast<double>(bytes);
  const uint32_t rounds = RoundsWithin(world, ranks_per_host);
  const uint32_t hosts = Hosts(world, ranks_per_host);
  const double within = rounds * (ReduceSeconds(within_host, all) + SendSeconds(within_host, all));
  if (hosts > 1) return within + RingAllReduceSeconds(between_hosts, hosts, bytes);
  const bool overlap = rounds > 0 && chunk_bytes > 0 && chunk_bytes < bytes;
  return within - (overlap ? static_cast<double>(bytes - chunk_bytes) * within_host.beta : 0);
}

}  // namespace tug
