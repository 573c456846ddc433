#ifndef TUG_MODEL_MEMORY_H_
#define TUG_MODEL_MEMORY_H_

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// Memory of a worker process, to choose `train.micro_batch` and `train.recompute` by and to compare
// its peak with. P = parameters (ElementCount of ModelLayout), the other letters as in
// model/layout.h:
//   weights       4 P, or 2 P with BF16 pulled as bf16; 0 of what is read where the lanes have it
//   packed        BF16: 4 bytes for each element of a matrix of products (kernels/linear.h: packed
//                 twice), FP32: 0
//   gradients     4 P for each virtual worker carried: one stays until its push is committed
//                 (of these three with ZERO2 and ZERO3 see PredictHeldBytes)
//   local steps   with sync.local_steps, for each virtual worker carried, weights of its own, 4 P,
//                 and the optimizer's state: 8 P with ADAMW, 4 P with SGD that has momentum, else
//                 0; the weights above are then 4 P, and are copied here also where the lanes have
//                 them only if they do not lie in one piece
//   activations   below
//   process       kProcessBytes: program, libraries, buffers of oneDNN and ZeroMQ, messages,
//                 scratch of kernels: attention's backward pass holds, for each compute thread,
//                 (4 T C / H + 224 T) floats with BF16, 192 T with FP32; with BF16 a weight
//                 gradient's copies take 2,200 (C + max(3 C, M)) bytes at most, once
inline constexpr uint64_t kProcessBytes = uint64_t{64} << 20;

// What of a job decides how much of weights and gradients a worker holds.
struct WorkerHolding {
  PlacementConfig placement = {};  // all fields filled; empty: SERVERS
  uint32_t virtual_workers = 1;    // that it carries
  uint64_t micro_batches = 1;      // of a virtual worker and step
  // By block: its weights are read where the lanes have them; empty: none.
  std::vector<bool> in_place = {};
  // It computes on a GPU: packed weights and activations are there, not here.
  bool on_gpu = false;
};
// `config`: all fields filled.
WorkerHolding WorkerHoldingOf(const JobConfig& config, uint32_t virtual_workers);

// What a worker holds of each in memory of its own, the most at a time (NodeCounters.weight_bytes
// and gradient_bytes).
struct HeldBytes {
  uint64_t weights = 0;  // packed copies included
  uint64_t gradients = 0;
};
// By placement.kind, with p parameters of a block, w = 4 bytes, or 2 with BF16 pulled as bf16, c
// bytes of packed copies of it, w = 0 of blocks that are read in place, S virtual workers carried:
//   SERVERS, ZERO1, MIXED  weights    sum of w p + c over all blocks
//                          gradients  S x sum of 4 p over all blocks
//   ZERO2                  weights    the same
//                          gradients  sum of 4 p over the G largest blocks
//   ZERO3                  weights    largest sum of w p over a window, and largest sum of c over
//                                     its blocks that have been used
//                          gradients  as ZERO2
// G: GradientBlocks. Windows (model/block_window.h) are of prefetch_blocks + 1 blocks, which follow
// each other in the order of use, and of the tied block beside where the last one is among them.
// Beyond that a worker holds a gradient for a while only where a lane is short of memory
// (worker/gradient_pool.h). `options` as for Model::Create. Pure.
HeldBytes PredictHeldBytes(const ModelOptions& options, CommConfig::Format pull_format,
                           const WorkerHolding& holding);

// `options` as for Model::Create, with max_micro_batch. Pure, thread-safe; all of them.
uint64_t PredictWorkerBytes(const ModelOptions& options, CommConfig::Format pull_format,
                            const WorkerHolding& holding);
// Gradients of how many blocks a worker has memory for, where it lets go of them once lanes have
// received them: placement.gradient_blocks, but all with several micro-batches a virtual worker,
// since all are then made in the first and complete in the last. At most `blocks`. Pure.
uint32_t GradientBlocks(const PlacementConfig& placement, uint64_t micro_batches, uint32_t blocks);

// Of a GPU's memory, by a model that stages weights and gradients there (model/staged_model.h), in
// blocks rounded up to kGpuBlockBytes:
//   weights      4 P, or 2 P where bf16 is bound
//   copies       BF16: 2 bytes for each element of a layer's biases; where FP32 is bound 2 for each
//                of a matrix of products, else 4 for each of biases and norms
//   gradients    4 P
//   activations  below, but for rows of logits, which are a multiple of 8 elements, and with BF16
//                the head's G rows: min(N, HeadGradientRows(V, kGpuLogitsGradientBytes))
//   attention    BF16: sums of the backward pass (kernels/attention_backward_plan.h), 512 MiB or
//                those of one head at most; of whichever batch up to max_micro_batch has most
//   encoder      GradientEncoder::device_bytes, where gradients are encoded there
//   peers        kGpuPeersBytes, where several GPUs compute one model
//   process      kGpuProcessBytes: kernels' code, 32 MiB for cuBLASLt, kernels' other scratch, and
//                what else CUDA takes for itself while the model is used
inline constexpr uint64_t kGpuProcessBytes = uint64_t{256} << 20;
// Buffers through which NCCL reaches other GPUs of the host: taken to be enough, not measured.
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
// Of a block of so many bytes what each of several GPUs copies from or to the host.
constexpr uint64_t DevicePartBytes(uint64_t bytes, uint32_t gpus) {
  const uint64_t least = (bytes + gpus - 1) / gpus;
  return (least + kGpuBlockBytes - 1) / kGpuBlockBytes * kGpuBlockBytes;
}
// Each of the GPUs has all parts of a block.
constexpr uint64_t DeviceBlockBytes(uint64_t elements, uint64_t element_bytes, uint32_t gpus = 1) {
  return gpus * DevicePartBytes(elements * element_bytes, gpus);
}
// `options` as for Model::Create, of one GPU: with several, each has the max_micro_batch that the
// largest part of a micro-batch is. Pure.
DeviceBytes PredictDeviceBytes(const ModelOptions& options, bool bf16_weights, uint32_t gpus = 1,
                               uint64_t encoder_bytes = 0);

// What local steps add to that; 0 without them.
uint64_t LocalStepBytes(const ModelOptions& options, CommConfig::Format pull_format,
                        const SyncConfig& sync, const OptimizerConfig& optimizer,
                        uint32_t virtual_workers);
uint64_t PackedWeightBytes(const ModelOptions& options);

// Bytes of activations: what Model::Create allocates, on the CPU. With N = micro-batch x T rows,
// and e bytes an element (4; with train.precision BF16 2), each array rounded up to 64 bytes:
//   N x ( sum over layers of what each keeps of its own
//       + what layers share
//       + e C for the embedding of each stack
//       + e C for each layer's output that is kept
//       + e (C + max(3 C, M)) scratch; with dropout e C more
//       + e C for the residual stream's gradient of each stack
//       + ENCODER_DECODER with PRE: e C + 8 for ln_memory )
//   + the head's
// A layer's activations, kept or shared, are for a row
//   A = e (7 C + 2 M) + 4 H + 16
//     (two LayerNorms C, their mean and rstd; qkv 3 C; attention's output C and log-sum-exp H; the
//     residual stream between C, or with POST also the sum behind the MLP, but one LayerNorm is the
//     output; MLP before and behind the activation 2 M)
//     with ReLU e M less; with cross-attention e 6 C + 4 H + 8 more
//   B = e 4 C + 4 H of these are SELECTIVE's: queries, keys, values, what attention makes of them;
//     with cross-attention twice that.
// Layers' own and shared memory, and outputs kept, of each stack's L layers (sets that layers share
// are shared by both stacks; the last layer's output is kept always):
//   NONE         own L A;            shared 0;                       outputs L
//   SELECTIVE    own L (A - B);      shared B;                       outputs L
//   FULL         own 0;              shared A;                       outputs L
//   UNIFORM k    own 0;              shared k A + (k - 1) e C;       outputs ceil(L / k)
//   BLOCK k      own (L - k) A;      shared A;                       outputs L
//   inference    own 0;              shared A;                       outputs 1
// with no scratch but e C (and e M with ReLU) and no gradients for inference.
// The head, for R = min(N, HeadChunkRows(V)) rows of logits at a time, and G = R of their gradients
// (more on a GPU, above): 4 R V + G (e C + 8) + 5 N.
// The classifier, for R = G samples: R (e C + 4 K + 5); with PRE e C + 8 more.
// BF16: G 2 V or 2 K more, for the logits' gradient, but for inference.
uint64_t PredictActivationBytes(const ModelOptions& options);

// What the literature counts for the layers of a decoder (or encoder) in 16 bits, nothing
// recomputed:
//   L (34 s b h + 5 a s^2 b),   s = T, b = samples, h = C, a = H.
// It assumes that softmax is stored (twice, and a mask: 5 a s^2 b), masks of dropout 1 byte, M = 4
// C. Ours (NONE, BF16) is L (32 s b h + (4 a + 16) s b): no mask, no s^2. Paper: Korthikanti et al.
// 2022, "Reducing activation recomputation in large transformer models", eq. 1.
uint64_t LecturesActivationBytes(const ModelOptions& options);

}  // namespace tug

#endif  // TUG_MODEL_MEMORY_H_
