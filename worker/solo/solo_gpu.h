// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_SOLO_SOLO_GPU_H_
#define TUG_WORKER_SOLO_SOLO_GPU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/solo/solo_training.h"

namespace tug {

// SoloDevice on GPU number `gpu`, which the calling thread uses from now on. Passes and updates are
// queued on one stream. Errors: UNAVAILABLE "no GPU: ...", but UNIMPLEMENTED in a build without
// CUDA; INVALID_ARGUMENT for an optimizer other than ADAMW; RESOURCE_EXHAUSTED; those of
// CreateModel.
absl::StatusOr<std::unique_ptr<SoloDevice>> NewSoloGpu(int gpu, const SoloDeviceOptions& options);

}  // namespace tug

#endif  // TUG_WORKER_SOLO_SOLO_GPU_H_
