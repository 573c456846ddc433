// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_GPU_MULTI_GPU_MODEL_H_
#define TUG_MODEL_GPU_MULTI_GPU_MODEL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "model/gpu/gpu_model.h"
#include "model/gpu/gpu_peers.h"

namespace tug {

// A model on GPUs of the host, given by distinct numbers. One GPU: a staged model
// (model/gpu/staged_model.h). Several: a staged model on each; they share every micro-batch
// (model/replicated_model.h) and add up gradients among themselves (model/gpu/gpu_peers.h) through
// `group`, in the order of its ranks; null: NewGpuGroup.
//
// Errors: those of NewStagedModel, with the GPU's number if there are several. UNAVAILABLE if none
// is usable, FAILED_PRECONDITION if only some are, or they cannot be connected.
absl::StatusOr<GpuModel> NewMultiGpuModel(const std::vector<int>& gpus,
                                          const GpuModelOptions& options,
                                          std::shared_ptr<GpuGroup> group = nullptr);

}  // namespace tug

#endif  // TUG_MODEL_GPU_MULTI_GPU_MODEL_H_
