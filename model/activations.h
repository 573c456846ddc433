#ifndef TUG_MODEL_ACTIVATIONS_H_
#define TUG_MODEL_ACTIVATIONS_H_

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

// What decides how much memory activations take.
struct ActivationOptions {
  ModelShape shape;
  TrainConfig train;     // precision, recompute, recompute_layers
  bool dropout = false;  // anything is dropped
  int64_t samples = 1;   // of a micro-batch
  bool inference = false;
  // Elements from one row of logits to the next: HeadColumns, or what a backend wants for them.
  int64_t logits_stride = 0;
  // Backend::LogitsGradientBytes.
  int64_t logits_gradient_bytes = 0;
};
// As the CPU has them.
ActivationOptions ActivationOptionsOf(const ModelOptions& options);
// Logits of a row: symbols, or classes of a classifier.
int64_t HeadColumns(const ModelShape& shape);

// What the backward pass of a LayerNorm reads, beside its input.
struct NormStatistics {
  float* mean = nullptr;  // [rows]
  float* rstd = nullptr;  // [rows]
};

// Residual branches of a layer, in their order.
inline constexpr int kMaxBranches = 3;

// What an attention leaves for its backward pass. `holder` is the branch whose activations these
// are: memory may be shared by the branches of several layers, and who does not find its own
// computes them again. N = samples x positions rows.
template <typename T>
struct AttentionMemory {
  T* q = nullptr;      // self-attention [N, 3C]: queries, keys, values; cross-attention [N, C]
  T* kv = nullptr;     // cross-attention [N, 2C]
  T* mixed = nullptr;  // [N, C] before the projection
  float* log_sum_exp = nullptr;  // [samples, H, T]
  const void* holder = nullptr;
};

// What a layer leaves, beside its input and output; `holder` the layer whose activations these are.
template <typename T>
struct LayerMemory {
  // By branch. PRE: norms[i] [N, C] is LayerNorm's output, sums[i] the residual stream behind the
  // branch, that of the last one being the layer's output. POST: sums[i] as well, norms[i] its
  // LayerNorm, that of the last one being the layer's output.
  std::array<T*, kMaxBranches> norms = {};
  std::array<T*, kMaxBranches> sums = {};
  std::array<NormStatistics, kMaxBranches> statistics = {};
  AttentionMemory<T>* self = nullptr;
  AttentionMemory<T>* cross = nullptr;
  T* before_activation = nullptr;  // [N, M]; ReLU: not kept, its derivative is known from `hidden`
  T* hidden = nullptr;             // [N, M] of the MLP, behind its activation
  T* out = nullptr;                // [N, C]; of layers whose output is the input of a next one that
                                   // does not keep it
  const void* holder = nullptr;
};

// Where one layer reads, writes and keeps.
template <typename T>
struct LayerActivations {
  const T* in = nullptr;
  T* out = nullptr;
  LayerMemory<T>* memory = nullptr;
  bool keeps_input = true;
};

// An embedding and the layers on it.
template <typename T>
struct StackActivations {
  T* embedding = nullptr;  // [N, C]
  std::vector<LayerActivations<T>> layers;
  const T* out = nullptr;  // of the last layer
  T* gradient = nullptr;   // [N, C] of the stack's residual stream
};

// All memory of a model but parameters and gradients: one piece, given out as arrays. How much:
// model/memory.h.
template <typename T>
class Activations {
 public:
  // `memory`: SizeBytes(options), on a boundary of 64 bytes; shared with those who allocate it.
  Activations(const ActivationOptions& options, std::shared_ptr<std::byte> memory);
  Activations(const Activations&) = delete;
  Activations& operator=(const Activations&) = delete;

  // Each array is rounded up to 64 bytes.
  static uint64_t SizeBytes(const ActivationOptions& options);

  std::vector<StackActivations<T>> stacks;

  // Of an encoder-decoder: what the decoder reads, [N, C].
  const T* memory = nullptr;
  T* memory_norm = nullptr;  // PRE: it is this
  NormStatistics memory_statistics;

  // Scratch of the blocks; contents last for one call.
  T* branch = nullptr;           // [N, C]
  T* branch_gradient = nullptr;  // [N, C], with dropout only
  T* wide = nullptr;             // [N, max(3C, M)]; inference: [N, M] with ReLU only

  // Of the head, for a chunk of R rows at a time, and for the gradients of G rows, which are whole
  // chunks but for the last; of the classifier, for the first tokens, R = G = samples. W =
  // logits_stride.
  struct Head {
    int64_t chunk_rows = 0;        // R at most
    int64_t gradient_rows = 0;     // G at most; float, inference: R
    T* input = nullptr;            // [G, C] behind ln_f, if there is one, or the first tokens
    T* first_tokens = nullptr;     // [R, C] classifier, PRE: before ln_f
    NormStatistics statistics;     // [G] of ln_f
    float* logits = nullptr;       // [R, W]
    T* logits_gradient = nullptr;  // [G, W]; float: the logits' own memory
    float* losses = nullptr;       // [N], of the classifier [R]
    uint8_t* correct = nullptr;    // the same
  } head;

 private:
  // Gives out consecutive arrays of a buffer, or only counts them.
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

// Rows of logits that are in memory at once: a function of the vocabulary alone, because the sums
// of the head's gradient are cut by it.
int64_t HeadChunkRows(int64_t symbols);
// Rows of bf16 gradients of logits that are in memory at once, by which those sums are cut then:
// chunks, as many as fit into so many bytes and are of use; one at least.
int64_t HeadGradientRows(int64_t symbols, int64_t gradient_bytes);

extern template class Activations<float>;
extern template class Activations<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_ACTIVATIONS_H_
