// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_LAYER_BLOCK_H_
#define TUG_MODEL_LAYERS_LAYER_BLOCK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/layers/activations.h"
#include "model/layers/block.h"
#include "model/layers/branch.h"
#include "model/layers/norm.h"

namespace tug {

// A transformer layer: residual branches of self-attention, cross-attention (only in the decoder of
// two stacks), and MLP.
//   PRE    x_{i+1} = x_i + dropout(f_i(norm_i(x_i)))
//   POST   x_{i+1} = norm_i(x_i + dropout(f_i(x_i)))
//
// Layers may share the memory of activations for the backward pass (model/layers/recompute.h). A
// layer that does not find its own activations there recomputes them, after the layer below has
// recomputed their input if that is not kept.
template <typename T>
class LayerBlock : public Block<T> {
 public:
  // Layer number `layer` of its stack. `below`: the layer below it; nullptr: none. `activations`
  // and `below` must outlive this.
  LayerBlock(const BlockSpec& spec, const ModelShape& shape, bool decoder_stack, int64_t layer,
             Activations<T>& activations, LayerBlock<T>* below);

  void Forward(const Pass<T>& pass) override;
  void Backward(const Pass<T>& pass) override;

 private:
  struct Part {
    std::unique_ptr<Branch<T>> branch;
    Norm<T> norm;
    uint32_t output_site;
    // Arrays of the forward pass.
    const T* stream;  // x_i
    const T* input;   // input of f_i
    T* sum;           // after the branch
    T* norm_output;
    NormStatistics statistics;
  };

  void AddParts(const ModelShape& shape, bool decoder_stack, int64_t layer);
  template <typename B>
  void AddPart(std::unique_ptr<B> branch, const std::string& name, const std::string& norm,
               uint32_t output_site);
  // Assigns each part its arrays.
  void Connect();
  const T* norm_input(const Part& part) const { return pre_norm_ ? part.stream : part.sum; }
  // With `whole`, runs up to the layer's output; otherwise computes only what the backward pass
  // reads.
  void Run(const Pass<T>& pass, bool whole);
  void AddResidual(const Pass<T>& pass, const Part& part);
  void Restore(const Pass<T>& pass, bool whole);
  void BackwardPre(const Pass<T>& pass, const Part& part);
  void BackwardPost(const Pass<T>& pass, const Part& part);
  // Gradient before the dropout of a branch's output; without dropout, the stream's gradient
  // itself.
  const T* BranchGradient(const Pass<T>& pass, const Part& part);

  const bool pre_norm_;
  const int64_t width_;
  Activations<T>& activations_;
  const LayerActivations<T> arrays_;
  LayerMemory<T>& memory_;
  T* const gradient_;  // of the stream: initially of the output, finally of the input
  LayerBlock<T>* const below_;
  std::vector<Part> parts_;
};

extern template class LayerBlock<float>;
extern template class LayerBlock<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_LAYER_BLOCK_H_
