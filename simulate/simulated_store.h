#ifndef TUG_SIMULATE_SIMULATED_STORE_H_
#define TUG_SIMULATE_SIMULATED_STORE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/timeline.h"

namespace tug {

// The run folder of a simulated job: what lanes and workers wrote, and which of it is a checkpoint.
// A run that is resumed finds what the one before has left.
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

  uint32_t runs = 0;  // that have written to it
  // By file, and then by segment.
  std::map<std::string, std::map<uint32_t, Segment>> files;
  std::map<std::string, Residual> residuals;  // by file
  // Those that are committed, by version. Later runs write some again.
  std::map<uint64_t, Manifest> checkpoints;
};

// Where a run begins that resumes what is there: with the newest checkpoint.
inline TimelineStart StartFrom(const SimulatedStore& store) {
  if (store.checkpoints.empty()) return {};
  const Manifest& newest = store.checkpoints.rbegin()->second;
  return {.version = newest.version(),
          .restore_path = "simulated",
          .clocks = {newest.clocks().begin(), newest.clocks().end()},
          .residuals = ResidualsIn(newest)};
}

}  // namespace tug

#endif  // TUG_SIMULATE_SIMULATED_STORE_H_
