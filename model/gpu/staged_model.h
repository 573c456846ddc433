// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_GPU_STAGED_MODEL_H_
#define TUG_MODEL_GPU_STAGED_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/gpu/gpu_model.h"
#include "model/gpu/gpu_peers.h"

namespace tug {

// A model on a GPU for a caller whose weights and gradients are in host memory. It queues
// (Model::queues) on three streams, which synchronize by events only:
//
//   compute  passes of the inner model on the GPU (model/backend/cuda_device.h)
//   pull     weights, from where they are bound to the block's memory on the GPU
//   push     gradients, from the GPU to where they are bound
//
//   1. BindWeights(b): pull waits for the last pass that reads b's weights, then copies.
//   2. Forward(b), Backward(b): compute waits for that copy, and Backward(b) for the copy of the
//      gradient that it overwrites. With a tied head, both passes of the last block also wait for
//      tied_block()'s copies.
//   3. Backward(b): push waits for the pass, then copies, unless the pass is partial. With
//      GpuModelOptions::encoder it queues the encoder's work instead of the copy.
//   4. AwaitGradient(b): the host waits for that copy.
//
// So a copy of weights overlaps with the passes of other blocks, and block b's gradient is in
// flight while the GPU computes block b - 1. Gradients of partial passes stay on the GPU, so
// BindGradient is read in the last pass only; do not bind another in between.
//
// All GPU memory (model/transformer/memory.h: PredictDeviceBytes) is allocated at the start,
// including what ReleaseWeights releases. Copies are fast while host memory is pinned (Model::Pin);
// otherwise they are slow, and Backward may block until the copy is done.
//
// With `peers` this is one of several GPUs that compute one model (model/gpu/gpu_peers.h), and a
// block's memory is cut into one part per GPU:
//
//   1. copies only this GPU's part of the weights, and gathers the others from their GPUs;
//   3. sums this GPU's part of the gradient over all GPUs, and copies only that part.
//
// So each byte is copied to or from the host once, by one of the GPUs. A micro-batch may have no
// samples: then nothing is computed, and the gradient is zero. `peers` must be joined before
// weights are bound; they are destroyed with the model. A model with peers runs a pass of each kind
// at creation. This makes the allocations of passes, and CUDA's loading of kernels at their first
// launch, happen before a kernel waits for another GPU: the driver may delay such calls until that
// kernel is done.
//
// `gpu` becomes the device of the calling thread, which is the model's. Errors: UNAVAILABLE
// "no GPU: ...", or UNIMPLEMENTED in a build without CUDA; RESOURCE_EXHAUSTED, with the planned
// sizes and the settings that help; those of CreateModel.
absl::StatusOr<GpuModel> NewStagedModel(int gpu, const GpuModelOptions& options,
                                        std::unique_ptr<GpuPeers> peers = nullptr);

}  // namespace tug

#endif  // TUG_MODEL_GPU_STAGED_MODEL_H_
