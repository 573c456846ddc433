#ifndef TUG_EXPERIMENT_EXCHANGE_CASE_H_
#define TUG_EXPERIMENT_EXCHANGE_CASE_H_

// Ways to make weights of the gradients of N workers, of which there are formulas
// (exchange_cost.h). Functions are pure and thread-safe.

#include <cstdint>
#include <optional>

#include "proto/job.pb.h"

namespace tug {

enum class ExchangeKind {
  kServers,  // a parameter server of `count` processes, each on a host of its own
  kMixed,    // BytePS's placement: a server beside each worker and `count` on hosts of their own
  kRing,     // all-reduce; a server beside each worker has all of the state
  kHalvingDoubling,
  kZero1,  // a server beside each worker has its part of the state
  kZero2,
  kZero3,
};

struct ExchangeCase {
  ExchangeKind kind = ExchangeKind::kServers;
  uint32_t count = 0;  // 0: the kind has none

  uint32_t Hosts(uint32_t workers) const { return workers + count; }
  // Whether a host has a server alone. Servers are dealt to hosts first, then workers, from the
  // first host on (cli/local_job.h).
  bool HasServerAlone(uint32_t host, uint32_t workers) const {
    return kind == ExchangeKind::kServers ? host < count : host >= workers;
  }
  // Whether each worker has a server beside it.
  bool BesideWorkers() const { return kind != ExchangeKind::kServers; }
};

// None: it is none of these, or an all-reduce whose algorithm is chosen by the size of a segment.
// REQUIRES: a configuration with its defaults.
std::optional<ExchangeCase> ExchangeCaseOf(const JobConfig& config);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_CASE_H_
