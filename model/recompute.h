#ifndef TUG_MODEL_RECOMPUTE_H_
#define TUG_MODEL_RECOMPUTE_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace tug {

// Which of its activations a layer keeps for the backward pass, and which lie in memory that it
// shares with other layers, so that they are computed again (job.proto, Recompute).
// Papers: Chen et al. 2016, "Training deep nets with sublinear memory cost"; Korthikanti et al.
// 2022 (SELECTIVE; UNIFORM and BLOCK are Megatron-LM's names).
struct LayerRecompute {
  // Memory of the layer's activations: the layer's own, or the shared set of that number.
  bool own = true;
  int shared_set = 0;
  // Attention's in shared memory, whatever the rest.
  bool shared_attention = false;
  // The layer's input is an array of its own; otherwise it is in the shared set of the layer below
  // and is made again with it.
  bool keeps_input = true;
};

// The layers of a stack, from below. `train` has all fields filled; with `inference` layers share
// everything. Pure.
std::vector<LayerRecompute> PlanRecompute(const TrainConfig& train, int64_t layers, bool inference);

}  // namespace tug

#endif  // TUG_MODEL_RECOMPUTE_H_
