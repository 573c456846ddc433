#include "server/memory.h"

#include <algorithm>

namespace tug {

uint64_t PredictServerBytes(const JobConfig& config, const SegmentTable& table, const View& view,
                            uint32_t server_node_id) {
  uint64_t parameters = 0;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const Lane& lane = view.lanes(static_cast<int>(view.lane_of_segment(static_cast<int>(id))));
    if (lane.server_node_id() == server_node_id) parameters += table.segment(id).elements();
  }
  const uint64_t virtual_workers = config.cluster().virtual_workers();
  const uint64_t sums = std::max<uint64_t>(1, (virtual_workers + 1) / 2);
  const uint64_t arriving = std::min<uint64_t>(
      config.comm().credit_bytes() * config.cluster().workers(), virtual_workers * 4 * parameters);
  return parameters * (4 + 4 + 8 + 4 * sums + 12) + arriving + (uint64_t{64} << 20);
}

}  // namespace tug
