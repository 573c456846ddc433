#ifndef TUG_COORDINATOR_TRAFFIC_FIGURES_H_
#define TUG_COORDINATOR_TRAFFIC_FIGURES_H_

#include <cstdint>

#include "proto/control.pb.h"

namespace tug {

// What the nodes of a job gave to the network, and what encoding it took: NodeCounters, added up
// over the nodes that are there.
struct TrafficFigures {
  uint64_t worker_socket_bytes = 0;  // mostly pushes
  uint64_t server_socket_bytes = 0;  // mostly weights
  double encode_seconds = 0;
  double decode_seconds = 0;
};

TrafficFigures TrafficFiguresOf(const StatusReply& status);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRAFFIC_FIGURES_H_
