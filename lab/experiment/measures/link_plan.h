// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_MEASURES_LINK_PLAN_H_
#define TUG_LAB_EXPERIMENT_MEASURES_LINK_PLAN_H_

// Load of a step's exchange on a link of a given rate.
//
// In a step every worker sends each server the server's part of the gradients, and gets as many
// bytes of weights back. The busiest link is that of the host with the most bytes to send; it
// receives as many. With 4 workers and 2 servers on separate hosts it is a server's: 2 models each
// way.

#include <cstdint>

#include "proto/experiment.pb.h"

namespace tug {

inline constexpr char kNoLink[] = "none";
// Whether the place is a testbed of hosts with shaped links.
bool HasLinks(const Place& place);

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

#endif  // TUG_LAB_EXPERIMENT_MEASURES_LINK_PLAN_H_
