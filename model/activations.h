#ifndef TUG_MODEL_ACTIVATIONS_H_
#define TUG_MODEL_ACTIVATIONS_H_

#include <cstdint>
#include <vector>

#include "base/lease.h"
#include "model/parameters.h"

namespace tug {

// What the forward pass of a layer leaves for its backward pass. N = samples x positions rows.
struct LayerActivations {
  float* ln_1;       // [N, C] output of ln_1
  float* ln_1_mean;  // [N]
  float* ln_1_rstd;  // [N]
  float* qkv;        // [N, 3C]
  float* probs;      // [samples, H, T, T]
  float* mixed;      // [N, C] output of attention, before its projection
  float* middle;     // [N, C] residual stream after attention
  float* ln_2;       // [N, C]
  float* ln_2_mean;  // [N]
  float* ln_2_rstd;  // [N]
  float* fc;         // [N, 4C] before GELU
  float* gelu;       // [N, 4C]
  float* out;        // [N, C] residual stream after the layer
};

// All memory of a Gpt but weights and gradients: one buffer, allocated and touched once.
class Activations {
 public:
  Activations(const GptShape& shape, int64_t samples);

  // Bytes that Activations(shape, samples) allocates; each array is rounded up to 64 bytes, so a
  // little above
  //   4 N (L (16 C + H T + 4) + 9 C + V + 3),   N = samples x T
  // (per row: L layers as above; embedding C, ln_f C + 2, logits V, loss 1, gradients 7 C).
  static uint64_t SizeBytes(const GptShape& shape, int64_t samples);

  float* embedding;  // [N, C] input of the first layer
  std::vector<LayerActivations> layers;
  float* ln_f;       // [N, C]
  float* ln_f_mean;  // [N]
  float* ln_f_rstd;  // [N]
  float* logits;     // [N, V], then their gradient
  float* losses;     // [N]
  float* gradient;   // [N, C] of the residual stream
  float* branch;     // [N, C] in the forward pass output, in the backward pass gradient of a branch
  float* branch_output;  // [N, C] gradient of a branch's output, behind dropout
  float* wide;           // [N, 4C] gradient of qkv (3C of it) and of fc

 private:
  // Gives out consecutive arrays of a buffer that starts at `base`; with nullptr only counts.
  class Carver;
  void Carve(const GptShape& shape, int64_t samples, Carver& carver);
  Activations() = default;

  AlignedBuffer buffer_;
};

}  // namespace tug

#endif  // TUG_MODEL_ACTIVATIONS_H_
