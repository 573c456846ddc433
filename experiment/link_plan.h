#ifndef TUG_EXPERIMENT_LINK_PLAN_H_
#define TUG_EXPERIMENT_LINK_PLAN_H_

// What a step's exchange puts on a link of a given rate.
//
// In a step every worker sends each server the server's part of the gradients, and gets as many
// bytes of weights back. The busiest link is the host's with most of that to send; as much comes to
// it. With 4 workers and 2 servers on hosts of their own it is a server's: 2 models each way.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace tug {

// "200mbit" -> 2e8 bits a second; as deploy/testbed takes it: a whole number and bit, kbit, mbit or
// gbit. INVALID_ARGUMENT for others.
absl::StatusOr<double> ParseLinkRate(const std::string& text);

inline constexpr char kNoLink[] = "none";
// Whether the place is hosts with links between them that are made for it.
bool HasLinks(const Place& place);

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

}  // namespace tug

#endif  // TUG_EXPERIMENT_LINK_PLAN_H_
