#ifndef TUG_PROTO_PLACEMENT_MODE_H_
#define TUG_PROTO_PLACEMENT_MODE_H_

// What `placement.kind` and `exchange` mean, as far as nodes differ by them. One row a placement.
// REQUIRES, of all functions: a configuration with its defaults.

#include "proto/job.pb.h"

namespace tug {

struct PlacementMode {
  PlacementConfig::Kind kind;
  const char* name;
  // As many servers as workers, one beside each.
  bool beside_workers;
  // Workers let go of a gradient when lanes have received it. What was received cannot be pushed
  // again then: segments stay where they are.
  bool frees_gradients;
  // Workers keep only the weights of blocks in use.
  bool frees_weights;
};

inline constexpr PlacementMode kPlacementModes[] = {
    {PlacementConfig::SERVERS, "servers", false, false, false},
    {PlacementConfig::ZERO1, "zero1", true, false, false},
    {PlacementConfig::ZERO2, "zero2", true, true, false},
    {PlacementConfig::ZERO3, "zero3", true, true, true},
    {PlacementConfig::MIXED, "mixed", false, false, false},
};

// REQUIRES: a kind of the table; what is not is taken for SERVERS.
constexpr const PlacementMode& PlacementModeOf(PlacementConfig::Kind kind) {
  for (const PlacementMode& mode : kPlacementModes) {
    if (mode.kind == kind) return mode;
  }
  return kPlacementModes[0];
}
inline const PlacementMode& PlacementModeOf(const JobConfig& config) {
  return PlacementModeOf(config.placement().kind());
}

inline bool AllReduces(const JobConfig& config) {
  return config.exchange() == JobConfig::ALL_REDUCE;
}

// One server beside each worker: as many of them.
inline bool HasServersBesideWorkers(const JobConfig& config) {
  return AllReduces(config) || PlacementModeOf(config).beside_workers;
}

// Servers are started where workers are, as far as there are so many of either.
inline bool StartsServersBesideWorkers(const JobConfig& config) {
  return HasServersBesideWorkers(config) || config.placement().kind() == PlacementConfig::MIXED;
}

}  // namespace tug

#endif  // TUG_PROTO_PLACEMENT_MODE_H_
