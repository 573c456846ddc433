#ifndef TUG_MODEL_STAGED_MODEL_H_
#define TUG_MODEL_STAGED_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/gpu_model.h"
#include "model/gpu_peers.h"

namespace tug {

// A model on a GPU for a caller whose weights and gradients lie in the host's memory. It queues
// (Model::queues) on three streams, which know of each other by events alone:
//
//   compute  the passes, of the model on the GPU that this one stages for (model/cuda_device.h)
//   pull     weights, from where they are bound into the block's own memory on the GPU
//   push     gradients, from there to where they are bound
//
//   1. BindWeights(b): pull waits for the last pass that reads b's weights; then the copy.
//   2. Forward(b), Backward(b): compute waits for that copy, and Backward(b) for the copy of the
//      gradient that it overwrites; with a tied head both passes of the last block wait for
//      tied_block()'s too.
//   3. Backward(b): push waits for what it has queued; then the copy, unless the pass is partial.
//      With GpuModelOptions::encoder that is what it queues there in place of the copy.
//   4. AwaitGradient(b): the host waits for that copy.
//
// So a copy of weights goes on beside the passes of other blocks, and block b's gradient is on its
// way while the GPU computes block b - 1. Gradients of partial passes stay on the GPU, so that what
// BindGradient says is read in the last pass only; between, no other is bound.
//
// Memory on the GPU (model/memory.h: PredictDeviceBytes) is all there from the beginning, also
// what ReleaseWeights lets go of. Host memory is copied quickly while it is pinned (Model::Pin),
// else slowly, and Backward may then block until the copy is done.
//
// With `peers` it is one of several that compute one model (model/gpu_peers.h), and a block's
// memory is cut into as many parts:
//
//   1. copies this GPU's part of the weights alone, and gathers the others from their GPUs;
//   3. has this GPU's part of the gradient be the sum over all GPUs, and copies it alone.
//
// So each byte is copied to or from the host once, by one of them. Its micro-batches may have
// no sample: then it computes nothing, and the gradient is zero. `peers` are joined before weights
// are bound, and go with the model. One that has peers runs a pass of each kind when it is made, so
// that what passes allocate, and what CUDA loads with a kernel's first launch, is there before a
// kernel waits for another GPU: the driver may hold such a call up until that kernel is done.
//
// On the GPU of that number, which the calling thread, that of the model, uses from here on.
// Errors: UNAVAILABLE "no GPU: ...", but UNIMPLEMENTED in a build without CUDA; RESOURCE_EXHAUSTED,
// naming what wants how much and which settings help; those of Model::Create.
absl::StatusOr<GpuModel> NewStagedModel(int gpu, const GpuModelOptions& options,
                                        std::unique_ptr<GpuPeers> peers = nullptr);

}  // namespace tug

#endif  // TUG_MODEL_STAGED_MODEL_H_
