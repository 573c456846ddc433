#include "coordinator/placement.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "base/check.h"

namespace tug {

std::vector<uint32_t> PlaceSegments(std::span<const uint64_t> segment_bytes, uint32_t lanes) {
  TUG_CHECK_GE(lanes, 1u);
  std::vector<uint32_t> heaviest_first(segment_bytes.size());
  std::iota(heaviest_first.begin(), heaviest_first.end(), 0u);
  std::stable_sort(heaviest_first.begin(), heaviest_first.end(),
                   [&](uint32_t a, uint32_t b) { return segment_bytes[a] > segment_bytes[b]; });

  using Load = std::pair<uint64_t, uint32_t>;  // bytes, lane
  std::priority_queue<Load, std::vector<Load>, std::greater<Load>> lightest;
  for (uint32_t lane = 0; lane < lanes; ++lane) lightest.push({0, lane});

  std::vector<uint32_t> lane_of_segment(segment_bytes.size());
  for (const uint32_t segment : heaviest_first) {
    const auto [bytes, lane] = lightest.top();
    lightest.pop();
    lane_of_segment[segment] = lane;
    lightest.push({bytes + segment_bytes[segment], lane});
  }
  return lane_of_segment;
}

std::vector<std::vector<uint32_t>> AssignVirtualWorkers(uint32_t virtual_workers,
                                                        uint32_t workers) {
  TUG_CHECK_GE(workers, 1u);
  TUG_CHECK_GE(virtual_workers, workers);
  std::vector<std::vector<uint32_t>> runs(workers);
  uint32_t next = 0;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    runs[worker].resize(virtual_workers / workers + (worker < virtual_workers % workers ? 1 : 0));
    std::iota(runs[worker].begin(), runs[worker].end(), next);
    next += static_cast<uint32_t>(runs[worker].size());
  }
  return runs;
}

}  // namespace tug
