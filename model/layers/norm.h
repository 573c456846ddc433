// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_NORM_H_
#define TUG_MODEL_LAYERS_NORM_H_

#include <string>

#include "model/layers/activations.h"
#include "model/layers/parameters.h"
#include "model/pass.h"

namespace tug {

// A LayerNorm with its parameters. T: type of activations.
template <typename T>
class Norm {
 public:
  explicit Norm(int64_t width) : width_(width) {}

  void AddTo(BlockParameters<T>& parameters, const std::string& name) {
    parameters.Add(name + ".weight", scale_);
    parameters.Add(name + ".bias", shift_);
  }

  // y = norm(x).   x, y [rows, C]; y may be x.
  void Forward(const Pass<T>& pass, int64_t rows, const T* x, T* y,
               NormStatistics statistics) const {
    const OpTimer timer(pass.profile, Op::kLayerNorm, MovedWork<T>(2 * rows * width_));
    pass.backend.LayerNormForward(
        {rows, width_, x, scale_.value, shift_.value, y, statistics.mean, statistics.rstd});
  }

  // sum = residual + dropout(x), y = norm(sum).   All [rows of the pass, C].
  void ForwardSum(const Pass<T>& pass, const T* x, const T* residual, uint32_t site, T* sum, T* y,
                  NormStatistics statistics) const {
    const OpTimer timer(pass.profile, Op::kLayerNorm, MovedWork<T>(4 * pass.rows() * width_));
    pass.backend.ResidualLayerNormForward({pass.Dropout(width_, site, x, residual, sum),
                                           scale_.value, shift_.value, y, statistics.mean,
                                           statistics.rstd});
  }

  // Computes dx from dy and the x of the forward pass; with `add`, dx +=. Without `add`, dx may be
  // dy.
  void Backward(const Pass<T>& pass, int64_t rows, const T* dy, const T* x,
                NormStatistics statistics, bool add, T* dx) const {
    const OpTimer timer(pass.profile, Op::kLayerNorm, MovedWork<T>((add ? 4 : 3) * rows * width_));
    pass.backend.LayerNormBackward({.rows = rows,
                                    .width = width_,
                                    .dy = dy,
                                    .x = x,
                                    .gamma = scale_.value,
                                    .mean = statistics.mean,
                                    .rstd = statistics.rstd,
                                    .accumulate = add,
                                    .dx = dx,
                                    .dgamma = scale_.gradient,
                                    .dbeta = shift_.gradient});
  }

 private:
  const int64_t width_;
  Vector scale_, shift_;
};

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_NORM_H_
