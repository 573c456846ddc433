#ifndef TUG_MODEL_LAYER_BLOCK_H_
#define TUG_MODEL_LAYER_BLOCK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/activations.h"
#include "model/block.h"
#include "model/branch.h"
#include "model/norm.h"

namespace tug {

// A transformer layer: residual branches of self-attention, in a decoder of two stacks
// cross-attention, and MLP.
//   PRE    x_{i+1} = x_i + dropout(f_i(norm_i(x_i)))
//   POST   x_{i+1} = norm_i(x_i + dropout(f_i(x_i)))
//
// The memory for what the backward pass reads may be shared with other layers (model/recompute.h).
// A layer that does not find its own activations there computes them again, after the layer below
// has made their input if that is not kept.
template <typename T>
class LayerBlock : public Block<T> {
 public:
  // The layer of that number in its stack. `below`: the layer under it, nullptr: none;
  // `activations` and `below` outlive this.
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
    const T* input;   // of f_i
    T* sum;           // behind the branch
    T* norm_output;
    NormStatistics statistics;
  };

  void AddParts(const ModelShape& shape, bool decoder_stack, int64_t layer);
  template <typename B>
  void AddPart(std::unique_ptr<B> branch, const std::string& name, const std::string& norm,
               uint32_t output_site);
  // Gives each part its arrays.
  void Connect();
  const T* norm_input(const Part& part) const { return pre_norm_ ? part.stream : part.sum; }
  // With `whole` to the layer's output, otherwise what the backward pass reads.
  void Run(const Pass<T>& pass, bool whole);
  void AddResidual(const Pass<T>& pass, const Part& part);
  void Restore(const Pass<T>& pass, bool whole);
  void BackwardPre(const Pass<T>& pass, const Part& part);
  void BackwardPost(const Pass<T>& pass, const Part& part);
  // Through the dropout of a branch's output; without dropout the stream's gradient itself.
  const T* BranchGradient(const Pass<T>& pass, const Part& part);

  const bool pre_norm_;
  const int64_t width_;
  Activations<T>& activations_;
  const LayerActivations<T> arrays_;
  LayerMemory<T>& memory_;
  T* const gradient_;  // of the stream: in, of the output; out, of the input
  LayerBlock<T>* const below_;
  std::vector<Part> parts_;
};

extern template class LayerBlock<float>;
extern template class LayerBlock<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYER_BLOCK_H_
