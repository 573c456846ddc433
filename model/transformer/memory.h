// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_TRANSFORMER_MEMORY_H_
#define TUG_MODEL_TRANSFORMER_MEMORY_H_

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// Memory of a worker process, for choosing `train.micro_batch` and `train.recompute` and for
// comparing with its peak. P = parameters (ElementCount of ModelLayout), other letters as in
// model/layout.h:
//   weights       4 P, or 2 P with BF16 pulled as bf16; 0 for weights read in place from the lanes
//   packed        BF16: 4 bytes per element of a matrix of products (kernels/linear.h: packed
//                 twice), FP32: 0
//   gradients     4 P per assigned virtual worker: kept until its push is committed
//                 (ZERO2 and ZERO3 change these three: see PredictHeldBytes)
//   local steps   with sync.local_steps, per assigned virtual worker: its own weights, 4 P, and
//                 optimizer state: 8 P with ADAMW, 4 P with SGD with momentum, else 0; the weights
//                 above are then 4 P, and weights in place are copied only if they are not in one
//                 piece
//   activations   below
//   process       kProcessBytes: program, libraries, buffers of oneDNN and ZeroMQ, messages,
//                 scratch of kernels: attention's backward pass holds, per compute thread,
//                 (4 T C / H + 224 T) floats with BF16, 192 T with FP32; with BF16 a weight
//                 gradient's copies take at most 2,200 (C + max(3 C, M)) bytes, once
inline constexpr uint64_t kProcessBytes = uint64_t{64} << 20;

// Job settings that determine how much of weights and gradients a worker holds.
struct WorkerHolding {
  PlacementConfig placement = {};  // all fields filled; empty: SERVERS
  uint32_t virtual_workers = 1;    // assigned to the worker
  uint64_t micro_batches = 1;      // per virtual worker and step
  // By block: whether its weights are read in place from the lanes; empty: none.
  std::vector<bool> in_place = {};
  // Whether it computes on a GPU, which then holds packed weights and activations.
  bool on_gpu = false;
};
// `config`: all fields filled.
WorkerHolding WorkerHoldingOf(const JobConfig& config, uint32_t virtual_workers);

// Peak of weights and gradients in the worker's own memory (NodeCounters.weight_bytes and
// gradient_bytes).
struct HeldBytes {
  uint64_t weights = 0;  // including packed copies
  uint64_t gradients = 0;
};
// By placement.kind. p: parameters of a block; w: 4 bytes, or 2 with BF16 pulled as bf16, or 0 for
// blocks read in place; c: bytes of its packed copies; S: assigned virtual workers:
//   SERVERS, ZERO1, MIXED  weights    sum of w p + c over all blocks
//                          gradients  S x sum of 4 p over all blocks
//   ZERO2                  weights    as SERVERS
//                          gradients  sum of 4 p over the G largest blocks
//   ZERO3                  weights    largest sum of w p over a window, and largest sum of c over
//                                     its blocks that have been used
//                          gradients  as ZERO2
// G: GradientBlocks. Windows (model/layers/block_window.h) have prefetch_blocks + 1 blocks,
// consecutive in the order of use, plus the tied block if the last block is among them. A worker
// briefly holds more gradients only if a lane is short of memory
// (worker/gradients/gradient_pool.h). `options` as for CreateModel. Pure.
HeldBytes PredictHeldBytes(const ModelOptions& options, CommConfig::Format pull_format,
                           const WorkerHolding& holding);

// `options` as for CreateModel, with max_micro_batch. This and the functions below are pure and
// thread-safe.
uint64_t PredictWorkerBytes(const ModelOptions& options, CommConfig::Format pull_format,
                            const WorkerHolding& holding);
// Number of blocks whose gradients a worker has memory for if it frees them once lanes have
// received them: placement.gradient_blocks, or all blocks with several micro-batches per virtual
// worker, since all gradients are then started by the first and completed by the last. At most
// `blocks`. Pure.
uint32_t GradientBlocks(const PlacementConfig& placement, uint64_t micro_batches, uint32_t blocks);

// GPU memory of a model that stages weights and gradients (model/gpu/staged_model.h), in blocks
// rounded up to kGpuBlockBytes:
//   weights      4 P, or 2 P if bf16 is bound
//   copies       BF16: 2 bytes per element of a layer's biases; if FP32 is bound, 2 per element of
//                a matrix of products, else 4 per element of biases and norms
//   gradients    4 P
//   activations  below, except that rows of logits are a multiple of 8 elements, and with BF16 the
//                head's G rows are min(N, HeadGradientRows(V, kGpuLogitsGradientBytes))
//   attention    BF16: sums of the backward pass, at most 512 MiB or those of one head
//                (kernels/cuda/attention/attention_backward_plan.h); maximum over all batches up to
//                max_micro_batch
//   encoder      GradientEncoder::device_bytes, if gradients are encoded on the GPU
//   peers        kGpuPeersBytes, if several GPUs compute one model
//   process      kGpuProcessBytes: kernels' code, 32 MiB for cuBLASLt, kernels' other scratch, and
//                memory that CUDA allocates while the model is used
inline constexpr uint64_t kGpuProcessBytes = uint64_t{256} << 20;
// Buffers through which NCCL reaches other GPUs of the host. An assumed upper bound, not measured.
inline constexpr uint64_t kGpuPeersBytes = uint64_t{512} << 20;
struct DeviceBytes {
  uint64_t weights = 0;
  uint64_t copies = 0;
  uint64_t gradients = 0;
  uint64_t activations = 0;
  uint64_t attention = 0;
  uint64_t encoder = 0;
  uint64_t peers = 0;

  uint64_t total() const {
    return weights + copies + gradients + activations + attention + encoder + peers +
           kGpuProcessBytes;
  }
};
inline constexpr uint64_t kGpuBlockBytes = 256;
// Part of a block of `bytes` that each of several GPUs copies from or to the host.
constexpr uint64_t DevicePartBytes(uint64_t bytes, uint32_t gpus) {
  const uint64_t least = (bytes + gpus - 1) / gpus;
  return (least + kGpuBlockBytes - 1) / kGpuBlockBytes * kGpuBlockBytes;
}
// Every GPU holds all parts of a block.
constexpr uint64_t DeviceBlockBytes(uint64_t elements, uint64_t element_bytes, uint32_t gpus = 1) {
  return gpus * DevicePartBytes(elements * element_bytes, gpus);
}
// `options` as for CreateModel, for one GPU: with several, max_micro_batch is the largest part of a
// micro-batch. Pure.
DeviceBytes PredictDeviceBytes(const ModelOptions& options, bool bf16_weights, uint32_t gpus = 1,
                               uint64_t encoder_bytes = 0);

// Additional memory of local steps; 0 without them.
uint64_t LocalStepBytes(const ModelOptions& options, CommConfig::Format pull_format,
                        const SyncConfig& sync, const OptimizerConfig& optimizer,
                        uint32_t virtual_workers);
uint64_t PackedWeightBytes(const ModelOptions& options);

// Bytes of activations allocated by CreateModel on the CPU. With N = micro-batch x T rows, and e
// bytes per element (4; with train.precision BF16 2), each array rounded up to 64 bytes:
//   N x ( sum over layers of the layer's own memory
//       + memory shared by layers
//       + e C for the embedding of each stack
//       + e C for each layer's output that is kept
//       + e (C + max(3 C, M)) scratch; with dropout e C more
//       + e C for the residual stream's gradient of each stack
//       + ENCODER_DECODER with PRE: e C + 8 for ln_memory )
//   + the head's
// A layer's activations, own or shared, take per row
//   A = e (7 C + 2 M) + 4 H + 16
//     (two LayerNorms C, their mean and rstd; qkv 3 C; attention's output C and log-sum-exp H; the
//     residual stream between C, or with POST also the sum after the MLP, but one LayerNorm is the
//     output; MLP before and after the activation 2 M)
//     with ReLU e M less; with cross-attention e 6 C + 4 H + 8 more
//   B = e 4 C + 4 H of these belong to SELECTIVE: queries, keys, values and attention's results;
//     with cross-attention twice that.
// Layers' own and shared memory, and outputs kept, of each stack's L layers (both stacks share the
// shared sets; the last layer's output is always kept):
//   NONE         own L A;            shared 0;                       outputs L
//   SELECTIVE    own L (A - B);      shared B;                       outputs L
//   FULL         own 0;              shared A;                       outputs L
//   UNIFORM k    own 0;              shared k A + (k - 1) e C;       outputs ceil(L / k)
//   BLOCK k      own (L - k) A;      shared A;                       outputs L
//   inference    own 0;              shared A;                       outputs 1
// Inference has no scratch except e C (and e M with ReLU), and no gradients.
// The head, for R = min(N, HeadChunkRows(V)) rows of logits at a time, and G = R of their gradients
// (more on a GPU, above): 4 R V + G (e C + 8) + 5 N.
// The classifier, for R = G samples: R (e C + 4 K + 5); with PRE e C + 8 more.
// BF16: G 2 V or 2 K more, for the logits' gradient, except for inference.
uint64_t PredictActivationBytes(const ModelOptions& options);

// Bytes that the literature counts for the layers of a decoder (or encoder) in 16 bits, without
// recomputation:
//   L (34 s b h + 5 a s^2 b),   s = T, b = samples, h = C, a = H.
// It assumes a stored softmax (twice, and a mask: 5 a s^2 b), dropout masks of 1 byte, M = 4 C.
// Tugboat (NONE, BF16) takes L (32 s b h + (4 a + 16) s b): no mask, no s^2. Paper: Korthikanti et
// al. 2022, "Reducing activation recomputation in large transformer models", eq. 1.
uint64_t LecturesActivationBytes(const ModelOptions& options);

}  // namespace tug

#endif  // TUG_MODEL_TRANSFORMER_MEMORY_H_
