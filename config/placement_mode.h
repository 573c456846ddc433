// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_PLACEMENT_MODE_H_
#define TUG_CONFIG_PLACEMENT_MODE_H_

// Properties of `placement.kind` and `exchange` by which nodes differ. One row per placement.
// REQUIRES, for all functions: a configuration with its defaults.

#include "proto/job.pb.h"

namespace tug {

struct PlacementMode {
  PlacementConfig::Kind kind;
  const char* name;
  // One server paired with each worker.
  bool beside_workers;
  // Workers release a gradient once lanes have received it. A received gradient cannot be pushed
  // again, so segments never move.
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

// REQUIRES: a kind of the table; any other is treated as SERVERS.
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

// Each worker is paired with a server.
inline bool HasServersBesideWorkers(const JobConfig& config) {
  return AllReduces(config) || PlacementModeOf(config).beside_workers;
}

// Servers are started on the hosts of workers, as far as the numbers match.
inline bool StartsServersBesideWorkers(const JobConfig& config) {
  return HasServersBesideWorkers(config) || config.placement().kind() == PlacementConfig::MIXED;
}

}  // namespace tug

#endif  // TUG_CONFIG_PLACEMENT_MODE_H_
