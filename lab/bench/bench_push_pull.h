// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_BENCH_PUSH_PULL_H_
#define TUG_LAB_BENCH_BENCH_PUSH_PULL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/bench/bench_job.h"

namespace tug {

// Arguments of `tug bench push-pull`.
struct PushPullArguments {
  std::vector<std::string> transports = {"tcp"};
  std::vector<std::string> sizes = {"4K", "64K", "1M", "4M"};
  std::vector<std::string> ops = {"push", "push-pull"};
  uint32_t servers = 1;
  uint32_t workers = 1;
  uint32_t lanes = 1;
  uint32_t virtual_workers_per_worker = 1;
  uint32_t outstanding = 0;  // 0: depends on the size
  std::string total;         // bytes of all blocks; empty: depends on the size
  double seconds = 2;
  int runs = 5;
  std::string checksum = "on";
  std::string format = "fp32";
  std::string through = "client";
  std::string limits = "on";
  std::vector<std::string> security;  // modes to measure in addition to none
  std::vector<std::string> hosts;     // of servers, of workers
  std::string json;
};

// One table: a transport and a size.
struct PushPullCase {
  BenchSetting setting;
  std::vector<BenchOp> ops;
  BenchLoad load;                // except the op
  std::vector<JobKeys> secured;  // keys of additional rows
};

// Checks the arguments and derives the cases. INVALID_ARGUMENT, naming the option.
absl::StatusOr<std::vector<PushPullCase>> PushPullCases(const PushPullArguments& arguments);

absl::Status RunPushPull(const PushPullArguments& arguments);

}  // namespace tug

#endif  // TUG_LAB_BENCH_BENCH_PUSH_PULL_H_
