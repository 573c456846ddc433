// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_RECOMPUTE_H_
#define TUG_MODEL_LAYERS_RECOMPUTE_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace tug {

// Which activations a layer keeps for the backward pass, and which are in memory shared with other
// layers and recomputed (proto/job.proto, Recompute). Papers: Chen et al. 2016, "Training deep nets
// with sublinear memory cost"; Korthikanti et al. 2022 (SELECTIVE; UNIFORM and BLOCK are
// Megatron-LM's names).
struct LayerRecompute {
  // Memory of the layer's activations: its own, or the shared set of this number.
  bool own = true;
  int shared_set = 0;
  // The attention's activations are in shared memory, whatever `own` is.
  bool shared_attention = false;
  // The layer's input has its own array; otherwise it is in the shared set of the layer below and
  // is recomputed with it.
  bool keeps_input = true;
};

// Plan for the layers of a stack, from the bottom up. `train` has all fields filled; with
// `inference`, layers share everything. Pure.
std::vector<LayerRecompute> PlanRecompute(const TrainConfig& train, int64_t layers, bool inference);

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_RECOMPUTE_H_
