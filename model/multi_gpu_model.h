#ifndef TUG_MODEL_MULTI_GPU_MODEL_H_
#define TUG_MODEL_MULTI_GPU_MODEL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "model/gpu_model.h"
#include "model/gpu_peers.h"

namespace tug {

// A model on GPUs of the host, by their numbers, all different: a staged model
// (model/staged_model.h) on the one that there is, or one on each of them, which share every
// micro-batch (model/replicated_model.h) and add up gradients among themselves
// (model/gpu_peers.h): as `group`, by its ranks; null: by NewGpuGroup.
//
// Errors: those of NewStagedModel, with the number of the GPU where there are several. UNAVAILABLE
// if none of them can be used, FAILED_PRECONDITION if some can, but not all, or not together.
absl::StatusOr<GpuModel> NewMultiGpuModel(const std::vector<int>& gpus,
                                          const GpuModelOptions& options,
                                          std::shared_ptr<GpuGroup> group = nullptr);

}  // namespace tug

#endif  // TUG_MODEL_MULTI_GPU_MODEL_H_
