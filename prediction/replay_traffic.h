// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PREDICTION_REPLAY_TRAFFIC_H_
#define TUG_PREDICTION_REPLAY_TRAFFIC_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blocks/partitioner.h"
#include "blocks/segment_table.h"
#include "proto/job.pb.h"

namespace tug {

// Workers with equally many virtual workers, which compute and exchange alike.
struct WorkerKind {
  uint32_t workers = 1;
  uint32_t virtual_workers = 1;  // per worker
  double slowdown = 1;           // of one of them (StragglerConfig): factor of its passes' times
};

// Computations and traffic of a replay job per step, as its nodes determine them.
struct ReplayTraffic {
  SegmentTable table;
  std::vector<uint32_t> lane_of_segment;  // lane index; server s begins at s * lanes_per_server
  uint32_t servers = 1;
  uint32_t lanes_per_server = 1;
  // One or two kinds, that with more virtual workers first. The worker with a straggler is one more
  // kind, behind the others like it.
  std::vector<WorkerKind> kinds;
  OptimizerConfig::Clip clip = OptimizerConfig::OFF;
  std::vector<double> forward_seconds;  // by block, per virtual worker
  std::vector<double> backward_seconds;
  // Bytes of a gradient by segment id: the longest possible encoding, once everything is encoded
  // that will be (comm.push_codec.warmup_steps), without frames.
  std::vector<uint64_t> push_bytes;
  // Bytes of weights by segment id; for pulls of changes those of an encoding, without the whole
  // ones (server/segments/shadow.h).
  std::vector<uint64_t> pull_bytes;

  uint32_t blocks() const { return table.num_blocks(); }
  uint32_t lanes() const { return servers * lanes_per_server; }
  // Bytes of a partition's gradient, and of its weights.
  uint64_t PushBytes(const Partition& part) const { return BytesOf(part, push_bytes); }
  uint64_t PullBytes(const Partition& part) const { return BytesOf(part, pull_bytes); }
  // Computation per step of a worker of the first kind.
  double compute_seconds() const;

 private:
  uint64_t BytesOf(const Partition& part, const std::vector<uint64_t>& bytes) const;
};

// INVALID_ARGUMENT for a rate that is not positive or not finite.
absl::Status CheckLinkRate(double bytes_per_second);

// Errors: INVALID_ARGUMENT for a job that is not a replay with resolved profile, or not BSP, and
// those of LayOut (blocks/job_blocks.h). Pure.
absl::StatusOr<ReplayTraffic> ReplayTrafficOf(const JobConfig& job);

}  // namespace tug

#endif  // TUG_PREDICTION_REPLAY_TRAFFIC_H_
