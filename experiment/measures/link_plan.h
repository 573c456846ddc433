// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPERIMENT_MEASURES_LINK_PLAN_H_
#define TUG_EXPERIMENT_MEASURES_LINK_PLAN_H_

// Load of a step's exchange on a link of a given rate.
//
// In a step every worker sends each server the server's part of the gradients, and gets as many
// bytes of weights back. The busiest link is that of the host with the most bytes to send; it
// receives as many. With 4 workers and 2 servers on separate hosts it is a server's: 2 models each
// way.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace tug {

// "200mbit" -> 2e8 bits per second. Same format as deploy/testbed: a whole number and bit, kbit,
// mbit or gbit. INVALID_ARGUMENT for others.
absl::StatusOr<double> ParseLinkRate(const std::string& text);

inline constexpr char kNoLink[] = "none";
// Whether the place is a testbed of hosts with shaped links.
bool HasLinks(const Place& place);

// Payload bytes per second of a TCP stream over such a link: 1448 of the 1514 bytes of an Ethernet
// frame.
double PayloadBytesPerSecond(double bits_per_second);

struct JobHosts {
  uint32_t servers = 1;
  uint32_t workers = 1;
  // Servers, then workers, are assigned to these in turn (launch/local_job.h); 0: one host per
  // node.
  uint32_t hosts = 0;
};

// Bytes on the busiest link one way in a step, as a multiple of the model's. Servers have equal
// parts; traffic within a host is not on its link. 0: nothing crosses a link.
double BusiestLinkModels(const JobHosts& nodes);

}  // namespace tug

#endif  // TUG_EXPERIMENT_MEASURES_LINK_PLAN_H_
