// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_SIMULATED_STORE_H_
#define TUG_LAB_SIMULATE_SIMULATED_STORE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/progress/timeline.h"

namespace tug {

// Run folder of a simulated job: the files of lanes and workers, and the checkpoints among them. A
// resumed run finds the files of the previous one.
struct SimulatedStore {
  struct Segment {
    uint32_t segment = 0;
    std::vector<float> weights, m, v;
    std::vector<uint64_t> clocks;
  };
  struct Residual {
    uint32_t virtual_worker = 0;
    std::map<uint32_t, std::vector<float>> segments;
  };

  uint32_t runs = 0;  // number of runs that have written to it
  // By file, and then by segment.
  std::map<std::string, std::map<uint32_t, Segment>> files;
  std::map<std::string, Residual> residuals;  // by file
  // Committed checkpoints, by version. Later runs write some again.
  std::map<uint64_t, Manifest> checkpoints;
};

// Start of a run that resumes from the newest checkpoint, if there is one.
inline TimelineStart StartFrom(const SimulatedStore& store) {
  if (store.checkpoints.empty()) return {};
  const Manifest& newest = store.checkpoints.rbegin()->second;
  return {.version = newest.version(),
          .restore_path = "simulated",
          .clocks = {newest.clocks().begin(), newest.clocks().end()},
          .residuals = ResidualsIn(newest)};
}

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_SIMULATED_STORE_H_
