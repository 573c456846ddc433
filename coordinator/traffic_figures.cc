#include "coordinator/traffic_figures.h"

namespace tug {

TrafficFigures TrafficFiguresOf(const StatusReply& status) {
  TrafficFigures figures;
  for (const NodeStatus& node : status.nodes()) {
    const NodeCounters& counters = node.counters();
    (node.kind() == SERVER ? figures.server_socket_bytes : figures.worker_socket_bytes) +=
        counters.socket_bytes();
    figures.encode_seconds += counters.encode_seconds();
    figures.decode_seconds += counters.decode_seconds();
  }
  return figures;
}

}  // namespace tug
