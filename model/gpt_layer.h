#ifndef TUG_MODEL_GPT_LAYER_H_
#define TUG_MODEL_GPT_LAYER_H_

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/dropout.h"
#include "model/activations.h"
#include "model/gpt.h"
#include "model/parameters.h"

namespace tug {

// One transformer layer of model/gpt.h, forward and backward, over buffers the caller owns.

// Where a mask of dropout belongs; kernels::DropoutKey::site.
inline constexpr uint32_t kEmbeddingSite = 0;
inline constexpr uint32_t AttentionSite(int layer) { return 1 + 3 * static_cast<uint32_t>(layer); }
inline constexpr uint32_t AttentionOutputSite(int layer) { return AttentionSite(layer) + 1; }
inline constexpr uint32_t MlpOutputSite(int layer) { return AttentionSite(layer) + 2; }

inline kernels::DropoutKey DropoutKeyOf(const DropoutStream& stream, uint32_t site) {
  return {.seed = stream.seed, .step = stream.step, .sample = stream.first_sample, .site = site};
}

// What a pass through one layer is about.
struct LayerPass {
  ThreadPool& pool;
  const GptShape& shape;
  int64_t samples;
  int64_t seq;  // positions of a sample
  float p;      // of dropping an element; 0: no dropout
  DropoutStream dropout;
  int layer;

  int64_t rows() const { return samples * seq; }
};

// middle = in + dropout(proj(attention(qkv(ln_1(in)))))
// out = middle + dropout(proj(gelu(fc(ln_2(middle)))))
//   in       [rows, C]
//   branch   [rows, C], scratch
//   a        written: a.out is the result
void LayerForward(const LayerPass& pass, const LayerTensors<const float>& w, const float* in,
                  float* branch, LayerActivations& a);

// Contents before and after are of no interest.
struct LayerScratch {
  float* branch;         // [rows, C]
  float* branch_output;  // [rows, C]
  float* wide;           // [rows, 4C]
};

// In: `gradient` [rows, C] with respect to a.out; out: with respect to `in`. dw is overwritten, or
// added to with `accumulate`. w, in and a as in the forward pass.
void LayerBackward(const LayerPass& pass, const LayerTensors<const float>& w, const float* in,
                   const LayerActivations& a, bool accumulate, const LayerScratch& scratch,
                   float* gradient, const LayerTensors<float>& dw);

}  // namespace tug

#endif  // TUG_MODEL_GPT_LAYER_H_
