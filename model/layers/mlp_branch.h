// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_MLP_BRANCH_H_
#define TUG_MODEL_LAYERS_MLP_BRANCH_H_

#include <string>

#include "model/layers/activations.h"
#include "model/layers/branch.h"
#include "model/layers/linear.h"

namespace tug {

// proj(activation(fc(x))).
template <typename T>
class Mlp : public Branch<T> {
 public:
  // `memory` must outlive this.
  Mlp(const ModelShape& shape, LayerMemory<T>& memory, BranchScratch<T> scratch);
  // Adds the parameters under `name` ("mlp").
  void AddTo(BlockParameters<T>& parameters, const std::string& name);

  void Inner(const Pass<T>& pass, const T* x) override;
  void Project(const Pass<T>& pass, T* y) override;
  void Backward(const Pass<T>& pass, const T* x, const T* dy, bool add, T* dx) override;

 private:
  const ModelShape shape_;
  LayerMemory<T>& memory_;
  const BranchScratch<T> scratch_;
  Linear<T> fc_, projection_;
};

extern template class Mlp<float>;
extern template class Mlp<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_MLP_BRANCH_H_
