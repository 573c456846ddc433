// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_LINEAR_H_
#define TUG_MODEL_LAYERS_LINEAR_H_

#include <string>

#include "kernels/activation.h"
#include "kernels/linear.h"
#include "model/layers/parameters.h"
#include "model/pass.h"

namespace tug {

// A linear layer with its parameters: y = x W + b.
template <typename T>
class Linear {
 public:
  Linear(int64_t in, int64_t out) : matrix_(in, out, kernels::WeightOrder::kInOut) {}

  void AddTo(BlockParameters<T>& parameters, const std::string& name) {
    parameters.Add(name + ".weight", matrix_);
    parameters.Add(name + ".bias", bias_);
  }

  // x [rows, in], y [rows, out].
  void Forward(const Pass<T>& pass, int64_t rows, const T* x, T* y) const {
    const OpTimer timer(pass.profile, Op::kProductForward, {.flops = matrix_.Flops(rows)});
    pass.backend.LinearForward(*matrix_.weights, {rows, x, bias_.value, y, matrix_.out});
  }
  // y: rows of logits, as in Backend::LogitsForward.
  void ForwardLogits(const Pass<T>& pass, int64_t rows, const T* x, float* y) const {
    const OpTimer timer(pass.profile, Op::kProductForward, {.flops = matrix_.Flops(rows)});
    const int64_t stride = pass.backend.LogitsStride(matrix_.out);
    pass.backend.LogitsForward(*matrix_.weights, {rows, x, bias_.value, y, stride});
  }

  // pre = x W + b, y = activation(pre).
  void ForwardActivation(const Pass<T>& pass, int64_t rows, const T* x,
                         kernels::Activation activation, T* pre, T* y) const {
    const OpTimer timer(pass.profile, Op::kProductForward, {.flops = matrix_.Flops(rows)});
    pass.backend.LinearActivationForward(*matrix_.weights,
                                         {rows, x, bias_.value, activation, pre, y});
  }

  // dW (+)= x^T dy, db += column sums of dy; then dx = dy W^T, or with `add` dx += dy W^T. dx may
  // be x or, with `add`, an array that dy was computed from.
  void Backward(const Pass<T>& pass, int64_t rows, const T* x, const T* dy, bool add, T* dx) const {
    BackwardOfRows(pass, rows, x, dy, matrix_.out, add, dx);
  }
  // The same for the gradient of logits, in the layout of Backend::CrossEntropy.
  void BackwardLogits(const Pass<T>& pass, int64_t rows, const T* x, const T* dlogits,
                      T* dx) const {
    BackwardOfRows(pass, rows, x, dlogits, pass.backend.LogitsStride(matrix_.out), /*add=*/false,
                   dx);
  }

 private:
  void BackwardOfRows(const Pass<T>& pass, int64_t rows, const T* x, const T* dy, int64_t dy_stride,
                      bool add, T* dx) const {
    if (bias_.gradient != nullptr) {
      const OpTimer timer(pass.profile, Op::kBiasGradient, MovedWork<T>(rows * matrix_.out));
      pass.backend.BiasGradient(rows, matrix_.out, dy, dy_stride, bias_.gradient);
    }
    {
      const OpTimer timer(pass.profile, Op::kProductWeightGradient, {.flops = matrix_.Flops(rows)});
      pass.backend.LinearWeightGradient(
          matrix_.WeightGradient(rows, x, dy, dy_stride, pass.batch.accumulate));
    }
    const OpTimer timer(pass.profile, Op::kProductInputGradient, {.flops = matrix_.Flops(rows)});
    pass.backend.LinearInputGradient(*matrix_.weights, {rows, dy, dy_stride, add, dx});
  }

  Matrix<T> matrix_;
  Vector bias_;
};

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_LINEAR_H_
