#ifndef TUG_MODEL_LINEAR_H_
#define TUG_MODEL_LINEAR_H_

#include <string>

#include "kernels/bias.h"
#include "kernels/linear.h"
#include "model/parameters.h"
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

  // x [rows, in], y [rows, out]; Y as kernels::LinearForward.
  template <typename Y>
  void Forward(const Pass& pass, int64_t rows, const T* x, Y* y) const {
    const OpTimer timer(pass.profile, Op::kProductForward, Flops(rows));
    kernels::LinearForward(pass.pool, matrix_.weights, rows, x, bias_.value, y);
  }

  // pre = x W + b, y = activation(pre).
  void ForwardActivation(const Pass& pass, int64_t rows, const T* x, kernels::Activation activation,
                         T* pre, T* y) const {
    const OpTimer timer(pass.profile, Op::kProductForward, Flops(rows));
    kernels::LinearActivationForward(pass.pool, matrix_.weights, rows, x, bias_.value, activation,
                                     pre, y);
  }

  // dW (+)= x^T dy, db += column sums of dy; then dx = dy W^T, or with `add` dx += dy W^T. dx may
  // be x or, with `add`, an array that dy was computed from.
  void Backward(const Pass& pass, int64_t rows, const T* x, const T* dy, bool add, T* dx) const {
    const kernels::LinearWeights<T>& w = matrix_.weights;
    if (bias_.gradient != nullptr) {
      const OpTimer timer(pass.profile, Op::kBiasGradient);
      kernels::BiasGradient(pass.pool, rows, w.out(), dy, bias_.gradient);
    }
    {
      const OpTimer timer(pass.profile, Op::kProductWeightGradient, Flops(rows));
      kernels::LinearWeightGradient(pass.pool, w.order(), w.in(), w.out(), rows, x, dy,
                                    pass.batch.accumulate, matrix_.gradient);
    }
    const OpTimer timer(pass.profile, Op::kProductInputGradient, Flops(rows));
    kernels::LinearInputGradient(pass.pool, w, rows, dy, add, dx);
  }

 private:
  double Flops(int64_t rows) const {
    return 2.0 * static_cast<double>(rows * matrix_.weights.in() * matrix_.weights.out());
  }

  Matrix<T> matrix_;
  Vector bias_;
};

}  // namespace tug

#endif  // TUG_MODEL_LINEAR_H_
