#ifndef TUG_WORKER_SOLO_GPU_H_
#define TUG_WORKER_SOLO_GPU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/solo_training.h"

namespace tug {

// SoloDevice of the GPU of that number, which the calling thread uses from here on. Passes and
// updates are queued on one stream. Errors: UNAVAILABLE "no GPU: ...", but UNIMPLEMENTED in a build
// without CUDA; INVALID_ARGUMENT for another optimizer than ADAMW; RESOURCE_EXHAUSTED; those of
// Model::Create.
absl::StatusOr<std::unique_ptr<SoloDevice>> NewSoloGpu(int gpu, const SoloDeviceOptions& options);

}  // namespace tug

#endif  // TUG_WORKER_SOLO_GPU_H_
