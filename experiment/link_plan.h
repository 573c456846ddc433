#ifndef TUG_EXPERIMENT_LINK_PLAN_H_
#define TUG_EXPERIMENT_LINK_PLAN_H_

// How a replayed model is scaled, so that its exchange takes a given time on a given link and
// stands in a given ratio to its computing.
//
// In a step every worker sends each server the server's part of the gradients, and gets as many
// bytes of weights back. The busiest link is the host's with most of that to send; as much comes to
// it. With 4 workers and 2 servers on hosts of their own it is a server's: 2 models each way.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

// "200mbit" -> 2e8 bits a second; as deploy/testbed takes it: a whole number and bit, kbit, mbit or
// gbit. INVALID_ARGUMENT for others.
absl::StatusOr<double> ParseLinkRate(const std::string& text);

// Bytes of payload that a TCP stream carries over such a link each second: 1448 of the 1514 bytes
// of an Ethernet frame.
double PayloadBytesPerSecond(double bits_per_second);

struct JobHosts {
  uint32_t servers = 1;
  uint32_t workers = 1;
  // Dealt to servers, then workers (cli/local_job.h); 0: each node is a host of its own.
  uint32_t hosts = 0;
};

// Bytes of the busiest link one way in a step, as a multiple of the model's. Servers have equal
// parts; what stays within a host is not on its link. 0: nothing crosses a link.
double BusiestLinkModels(const JobHosts& nodes);

struct ReplayScale {
  double size_scale = 1;
  double time_scale = 1;
  double model_bytes = 0;       // FP32
  double transfer_seconds = 0;  // of a step's bytes one way over the busiest link
  double compute_seconds = 0;   // of a step, forward and backward
};

// `profile`: as it is shipped or written. `transfer_seconds`: wished; `ratio`: of transfer to
// compute. REQUIRES: all positive; a profile that computes; BusiestLinkModels > 0.
ReplayScale ScaleToLink(const ReplayProfile& profile, const JobHosts& nodes, double bits_per_second,
                        double transfer_seconds, double ratio);

// Sizes of what leaves at a time.
struct LinkGrain {
  uint64_t segment_elements = 0;
  uint64_t partition_bytes = 0;
  uint64_t credit_bytes = 0;       // of pushes, of a worker
  uint64_t pull_credit_bytes = 0;  // of weights on their way to a worker
};
// For a model of `model_bytes`: about so many partitions, a segment each; credit for 4, and of
// weights for 4 from each server, since less leaves a link idle while it is acknowledged. With 700,
// 4 workers and 2 servers, what all of them have on their way over one link is half of what a link
// of deploy/testbed queues. What it cannot queue TCP loses, its streams then share the link
// unevenly, and a step waits for the slowest.
LinkGrain GrainOf(double model_bytes, uint32_t servers, double partitions = 700);

}  // namespace tug

#endif  // TUG_EXPERIMENT_LINK_PLAN_H_
