// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_ACTIVATIONS_H_
#define TUG_MODEL_LAYERS_ACTIVATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/bf16.h"
#include "model/layout.h"
#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// Options that determine the memory of activations.
struct ActivationOptions {
  ModelShape shape;
  TrainConfig train;     // precision, recompute, recompute_layers
  bool dropout = false;  // whether any element is dropped
  int64_t samples = 1;   // per micro-batch
  bool inference = false;
  // Elements from one row of logits to the next: HeadColumns, or the backend's LogitsStride.
  int64_t logits_stride = 0;
  // Backend::LogitsGradientBytes.
  int64_t logits_gradient_bytes = 0;
};
// Options of the CPU backend.
ActivationOptions ActivationOptionsOf(const ModelOptions& options);
// Logits per row: symbols, or classes of a classifier.
int64_t HeadColumns(const ModelShape& shape);

// Statistics that the backward pass of a LayerNorm reads, in addition to its input.
struct NormStatistics {
  float* mean = nullptr;  // [rows]
  float* rstd = nullptr;  // [rows]
};

// Limit of residual branches per layer.
inline constexpr int kMaxBranches = 3;

// Activations an attention keeps for its backward pass. `holder`: branch whose activations these
// are. Branches of several layers may share the memory; a branch that is not the holder recomputes
// its activations. N = samples x positions rows.
template <typename T>
struct AttentionMemory {
  T* q = nullptr;      // self-attention [N, 3C]: queries, keys, values; cross-attention [N, C]
  T* kv = nullptr;     // cross-attention [N, 2C]
  T* mixed = nullptr;  // [N, C] before the projection
  float* log_sum_exp = nullptr;  // [samples, H, T]
  const void* holder = nullptr;
};

// Activations a layer keeps, besides its input and output. `holder`: layer whose activations these
// are.
template <typename T>
struct LayerMemory {
  // By branch. PRE: norms[i] [N, C] is LayerNorm's output, sums[i] the residual stream after the
  // branch; the last sum is the layer's output. POST: sums[i] likewise, norms[i] its LayerNorm; the
  // last norm is the layer's output.
  std::array<T*, kMaxBranches> norms = {};
  std::array<T*, kMaxBranches> sums = {};
  std::array<NormStatistics, kMaxBranches> statistics = {};
  AttentionMemory<T>* self = nullptr;
  AttentionMemory<T>* cross = nullptr;
  T* before_activation = nullptr;  // [N, M]; null for ReLU, `hidden` gives its derivative
  T* hidden = nullptr;             // [N, M] of the MLP, after its activation
  T* out = nullptr;                // [N, C]; output, if the next layer does not keep its input
  const void* holder = nullptr;
};

// Arrays that one layer reads, writes and keeps.
template <typename T>
struct LayerActivations {
  const T* in = nullptr;
  T* out = nullptr;
  LayerMemory<T>* memory = nullptr;
  bool keeps_input = true;
};

// Activations of an embedding and its layers.
template <typename T>
struct StackActivations {
  T* embedding = nullptr;  // [N, C]
  std::vector<LayerActivations<T>> layers;
  const T* out = nullptr;  // of the last layer
  T* gradient = nullptr;   // [N, C] of the stack's residual stream
};

// All memory of a model except parameters and gradients: one buffer, carved into arrays. Size:
// model/transformer/memory.h.
template <typename T>
class Activations {
 public:
  // `memory`: SizeBytes(options) bytes, aligned to 64; shared with its allocator.
  Activations(const ActivationOptions& options, std::shared_ptr<std::byte> memory);
  Activations(const Activations&) = delete;
  Activations& operator=(const Activations&) = delete;

  // Each array is rounded up to 64 bytes.
  static uint64_t SizeBytes(const ActivationOptions& options);

  std::vector<StackActivations<T>> stacks;

  // Encoder-decoder: input of cross-attention, [N, C].
  const T* memory = nullptr;
  T* memory_norm = nullptr;  // PRE: same as `memory`
  NormStatistics memory_statistics;

  // Scratch of the blocks; valid during one call.
  T* branch = nullptr;           // [N, C]
  T* branch_gradient = nullptr;  // [N, C], with dropout only
  T* wide = nullptr;             // [N, max(3C, M)]; inference: [N, M] with ReLU only

  // Arrays of the head, for a chunk of R rows at a time, and for gradients of G rows (whole chunks,
  // except the last). Classifier: for the first tokens, R = G = samples. W = logits_stride.
  struct Head {
    int64_t chunk_rows = 0;        // R at most
    int64_t gradient_rows = 0;     // G at most; float, inference: R
    T* input = nullptr;            // [G, C] after ln_f, if there is one, or the first tokens
    T* first_tokens = nullptr;     // [R, C] classifier, PRE: before ln_f
    NormStatistics statistics;     // [G] of ln_f
    float* logits = nullptr;       // [R, W]
    T* logits_gradient = nullptr;  // [G, W]; float: the logits' own memory
    float* losses = nullptr;       // [N]; classifier [R]
    uint8_t* correct = nullptr;    // [N]; classifier [R]
  } head;

 private:
  // Carves consecutive arrays from a buffer, or only counts them.
  class Carver;
  Activations() = default;
  void Carve(const ActivationOptions& options, Carver& carver);
  void CarveStack(const ActivationOptions& options, bool decoder_stack, Carver& carver);
  void CarveLayer(const ActivationOptions& options, bool cross, LayerMemory<T>& memory,
                  Carver& carver);
  void CarveHead(const ActivationOptions& options, Carver& carver);
  AttentionMemory<T>* NewAttention(const ActivationOptions& options, bool cross, Carver& carver);

  const std::shared_ptr<std::byte> buffer_;
  std::vector<std::unique_ptr<LayerMemory<T>>> layer_memory_;
  std::vector<std::unique_ptr<AttentionMemory<T>>> attention_memory_;
  std::vector<LayerMemory<T>*> shared_sets_;
  AttentionMemory<T>* shared_self_ = nullptr;
  AttentionMemory<T>* shared_cross_ = nullptr;
};

// Rows of logits in memory at once. Depends only on the vocabulary, because it determines the order
// of sums in the head's gradient.
int64_t HeadChunkRows(int64_t symbols);
// Rows of bf16 gradients of logits in memory at once, which then determine that order: whole chunks
// that fit in `gradient_bytes` and are useful; at least one.
int64_t HeadGradientRows(int64_t symbols, int64_t gradient_bytes);

extern template class Activations<float>;
extern template class Activations<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_ACTIVATIONS_H_
