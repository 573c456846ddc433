// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPLAIN_TRACED_PROFILE_H_
#define TUG_EXPLAIN_TRACED_PROFILE_H_

// Input for the simulator (prediction/scheduling.h), estimated from a job's trace: compute
// time and parameters of each block, the straggler, and the rates of links and lanes.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "prediction/scheduling.h"
#include "proto/job.pb.h"

namespace tug {

// Limit over all predictions of a trace: about 15 s.
inline constexpr double kMaxWhatIfChunks = 1e8;

struct TracedRun {
  std::string folder;
  JobConfig config;  // resolved
  // Rate of a host's link; 0: unknown. Through memory: of the link of a host of its own.
  double link_bytes_per_second = 0;
};

struct TracedProfile {
  JobConfig job;         // the traced job as a replay of the measured times
  SimulatedHosts hosts;  // estimated from the trace; latency and messages as in TestbedHosts
  // Compute time of the slowest virtual worker, relative to the others; 1: no straggler.
  double slowdown = 1;
  bool is_replay = false;  // the traced job was one: its profile sets the samples of a pass
  // All nodes ran on one host and exchanged through its memory: `hosts` have links as fast as that.
  bool in_memory = false;
  double own_link_bytes_per_second = 0;  // in_memory: if every process had a host of its own
  std::vector<std::string> notes;        // assumptions, one line each
};

// The time of a block is the median over steps and virtual workers. A virtual worker whose median
// is at least 1.15 times that of the others is not counted: it is the job's straggler.
//
// The link's rate, unless it is known, is that of the fastest end of a link in one direction: bytes
// over time, in periods of transfers without a pause and with at least 256 KiB; the 90th percentile
// by bytes. A link that other traffic slows down is underestimated. Transfers through memory are
// measured in the same way, however small they are.
//
// Errors, one line with the command that records a run, or explains this one, with a what-if:
// UNIMPLEMENTED, naming what the simulator does not model of the job; INVALID_ARGUMENT for a trace
// without compute times or pulls of a block.
absl::StatusOr<TracedProfile> ProfileOfTrace(const nlohmann::json& trace, const TracedRun& run);

}  // namespace tug

#endif  // TUG_EXPLAIN_TRACED_PROFILE_H_
