// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_EXCHANGE_CASE_H_
#define TUG_LAB_EXPERIMENT_RESULTS_EXCHANGE_CASE_H_

// Ways to turn the gradients of N workers into weights that have formulas
// (lab/experiment/sections/exchange_cost.h). Functions are pure and thread-safe.

#include <cstdint>
#include <optional>

#include "proto/job.pb.h"

namespace tug {

enum class ExchangeKind {
  kServers,  // a parameter server of `count` processes, each on its own host
  kMixed,    // BytePS: a server next to each worker, and `count` on their own hosts
  kRing,     // all-reduce; the server next to each worker has all of the state
  kHalvingDoubling,
  kZero1,  // the server next to each worker has its part of the state
  kZero2,
  kZero3,
};

struct ExchangeCase {
  ExchangeKind kind = ExchangeKind::kServers;
  uint32_t count = 0;  // 0: does not apply to the kind

  uint32_t Hosts(uint32_t workers) const { return workers + count; }
  // Whether a host has a server but no worker. Servers are assigned to hosts first, then workers,
  // from the first host on (launch/local_job.h).
  bool HasServerAlone(uint32_t host, uint32_t workers) const {
    return kind == ExchangeKind::kServers ? host < count : host >= workers;
  }
  // Whether each worker has a server next to it.
  bool IsPairedWithWorkers() const { return kind != ExchangeKind::kServers; }
};

// None: not one of these, or an all-reduce that chooses its algorithm by the size of a segment.
// REQUIRES: a configuration with defaults filled in.
std::optional<ExchangeCase> ExchangeCaseOf(const JobConfig& config);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_EXCHANGE_CASE_H_
