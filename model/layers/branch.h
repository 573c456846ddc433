// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_BRANCH_H_
#define TUG_MODEL_LAYERS_BRANCH_H_

#include <string>

#include "model/layers/parameters.h"
#include "model/pass.h"

namespace tug {

// Function in a residual branch of a layer: y = f(x). The layer adds the norm, the dropout of y and
// the residual sum. x, y and their gradients are [rows, C].
//
// f is an inner part, whose results the backward pass reads, and a projection, whose output it does
// not.
template <typename T>
class Branch {
 public:
  virtual ~Branch() = default;

  // Computes the inner part into the branch's activations.
  virtual void Inner(const Pass<T>& pass, const T* x) = 0;
  // y = projection of Inner's result.
  virtual void Project(const Pass<T>& pass, T* y) = 0;
  // Computes gradients of the parameters, and dx (with `add`: dx +=). x as in Inner. With `add`, dy
  // may be dx: it is read before dx is written. REQUIRES: Inner ran since another branch last used
  // the memory. Attentions check this themselves and rerun Inner.
  virtual void Backward(const Pass<T>& pass, const T* x, const T* dy, bool add, T* dx) = 0;
};

// Scratch of Backward; see Activations.
template <typename T>
struct BranchScratch {
  T* branch = nullptr;
  T* wide = nullptr;
};

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_BRANCH_H_
