#ifndef TUG_SIMULATE_REPLAY_TRAFFIC_H_
#define TUG_SIMULATE_REPLAY_TRAFFIC_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exchange/segment_table.h"
#include "proto/job.pb.h"
#include "scheduler/partitioner.h"

namespace tug {

// Workers that carry equally many virtual workers. They compute and exchange alike.
struct WorkerKind {
  uint32_t workers = 1;
  uint32_t virtual_workers = 1;  // of each
  double slowdown = 1;           // of one of them (StragglerConfig): its passes take so much longer
};

// What a replay job computes and exchanges in a step, as its nodes would work it out.
struct ReplayTraffic {
  SegmentTable table;
  std::vector<uint32_t> lane_of_segment;  // index; server s has lanes_per_server from s * that on
  uint32_t servers = 1;
  uint32_t lanes_per_server = 1;
  // Those with most virtual workers first, one or two; the worker that carries a straggler is one
  // more, behind the others like it.
  std::vector<WorkerKind> kinds;
  OptimizerConfig::Clip clip = OptimizerConfig::OFF;
  std::vector<double> forward_seconds;  // by block, of one virtual worker
  std::vector<double> backward_seconds;
  // By segment id: of its gradient, as long as an encoding can be, once all that is to be encoded
  // is (comm.push_codec.warmup_steps); what frames it is left out.
  std::vector<uint64_t> push_bytes;
  // Of its weights; of changes as of an encoding, and whole ones (server/shadow.h) are left out.
  std::vector<uint64_t> pull_bytes;

  uint32_t blocks() const { return table.num_blocks(); }
  uint32_t lanes() const { return servers * lanes_per_server; }
  // Of a gradient, and of weights.
  uint64_t PushBytes(const Partition& part) const { return BytesOf(part, push_bytes); }
  uint64_t PullBytes(const Partition& part) const { return BytesOf(part, pull_bytes); }
  // Of a worker of the first kind, a step.
  double compute_seconds() const;

 private:
  uint64_t BytesOf(const Partition& part, const std::vector<uint64_t>& bytes) const;
};

// INVALID_ARGUMENT for a link that carries nothing, or without end.
absl::Status CheckLinkRate(double bytes_per_second);

// Errors: INVALID_ARGUMENT for what is no replay with its profile resolved, is not BSP,
// and those of LayOut (coordinator/job_blocks.h). Pure.
absl::StatusOr<ReplayTraffic> ReplayTrafficOf(const JobConfig& job);

}  // namespace tug

#endif  // TUG_SIMULATE_REPLAY_TRAFFIC_H_
