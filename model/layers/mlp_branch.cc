// SPDX-License-Identifier: Apache-2.0
#include "model/layers/mlp_branch.h"

#include "kernels/activation.h"

namespace tug {
namespace {

kernels::Activation KindOf(const ModelShape& shape) {
  return shape.activation == ModelConfig::RELU ? kernels::Activation::kRelu
                                               : kernels::Activation::kGelu;
}

}  // namespace

template <typename T>
Mlp<T>::Mlp(const ModelShape& shape, LayerMemory<T>& memory, BranchScratch<T> scratch)
    : shape_(shape),
      memory_(memory),
      scratch_(scratch),
      fc_(shape.width, shape.mlp_width),
      projection_(shape.mlp_width, shape.width) {}

template <typename T>
void Mlp<T>::AddTo(BlockParameters<T>& parameters, const std::string& name) {
  fc_.AddTo(parameters, name + ".c_fc");
  projection_.AddTo(parameters, name + ".c_proj");
}

template <typename T>
void Mlp<T>::Inner(const Pass<T>& pass, const T* x) {
  T* const pre = memory_.before_activation != nullptr ? memory_.before_activation : scratch_.wide;
  fc_.ForwardActivation(pass, pass.rows(), x, KindOf(shape_), pre, memory_.hidden);
}

template <typename T>
void Mlp<T>::Project(const Pass<T>& pass, T* y) {
  projection_.Forward(pass, pass.rows(), memory_.hidden, y);
}

template <typename T>
void Mlp<T>::Backward(const Pass<T>& pass, const T* x, const T* dy, bool add, T* dx) {
  T* const dhidden = scratch_.wide;
  projection_.Backward(pass, pass.rows(), memory_.hidden, dy, /*add=*/false, dhidden);
  {
    const OpTimer timer(pass.profile, Op::kActivation,
                        MovedWork<T>(3 * pass.rows() * shape_.mlp_width));
    // ReLU: max(u, 0) is positive exactly where u is.
    const T* const pre =
        memory_.before_activation != nullptr ? memory_.before_activation : memory_.hidden;
    pass.backend.ActivationBackward(KindOf(shape_), pass.rows() * shape_.mlp_width, dhidden, pre,
                                    dhidden);
  }
  fc_.Backward(pass, pass.rows(), x, dhidden, add, dx);
}

template class Mlp<float>;
template class Mlp<kernels::Bf16>;

}  // namespace tug
