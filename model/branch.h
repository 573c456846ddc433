#ifndef TUG_MODEL_BRANCH_H_
#define TUG_MODEL_BRANCH_H_

#include <string>

#include "model/parameters.h"
#include "model/pass.h"

namespace tug {

// What stands in a residual branch of a layer: y = f(x), without the norm, the dropout of y and the
// residual sum, which are the layer's. x, y and their gradients are [rows, C].
//
// f is an inner part, all that the backward pass reads, and a projection, whose output it does not.
template <typename T>
class Branch {
 public:
  virtual ~Branch() = default;

  // The inner part, into the activations that the branch was made with.
  virtual void Inner(const Pass<T>& pass, const T* x) = 0;
  // y = the projection of what Inner left.
  virtual void Project(const Pass<T>& pass, T* y) = 0;
  // Gradients of the parameters; and dx, or with `add` dx +=. x as in Inner. dy may be dx with
  // `add`: it is read before dx is written. REQUIRES: Inner ran since the memory was last somebody
  // else's, but for attentions, which see to it themselves.
  virtual void Backward(const Pass<T>& pass, const T* x, const T* dy, bool add, T* dx) = 0;
};

// Scratch of Backward, see Activations.
template <typename T>
struct BranchScratch {
  T* branch = nullptr;
  T* wide = nullptr;
};

}  // namespace tug

#endif  // TUG_MODEL_BRANCH_H_
