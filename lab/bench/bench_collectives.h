// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_BENCH_COLLECTIVES_H_
#define TUG_LAB_BENCH_BENCH_COLLECTIVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collective/schedules/cost.h"
#include "lab/bench/collective_ranks.h"

namespace tug {

// Arguments of `tug bench collectives`.
struct CollectivesArguments {
  std::vector<std::string> transports;  // empty: tcp and shm; only tcp with `hosts`
  std::vector<std::string> sizes = {"4K", "64K", "1M", "4M", "16M", "64M"};
  std::vector<uint32_t> ranks = {2};
  std::vector<std::string> algorithms = {"ring",        "halving_doubling", "recursive_doubling",
                                         "binary_tree", "hierarchical",     "auto"};
  std::string type = "fp32";
  uint32_t ranks_per_host = 2;
  std::string chunk = "256K";
  std::string checksum = "on";
  std::string limits = "on";
  double seconds = 0.2;
  int runs = 5;
  std::vector<std::string> hosts;
  std::string json;
};

// One table: a transport and a number of ranks.
struct CollectivesCase {
  std::string transport;
  CollectiveSetting setting;
  std::vector<uint64_t> sizes;
  std::vector<std::string> algorithms;
  uint32_t ranks_per_host = 1;
};

// Checks the arguments and derives the cases. INVALID_ARGUMENT, naming the option; also if the
// ranks' buffers together exceed this machine's memory.
absl::StatusOr<std::vector<CollectivesCase>> CollectivesCases(
    const CollectivesArguments& arguments);

absl::Status RunCollectives(const CollectivesArguments& arguments);

}  // namespace tug

#endif  // TUG_LAB_BENCH_BENCH_COLLECTIVES_H_
