// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_LINEAR_REF_H_
#define TUG_KERNELS_REFERENCE_LINEAR_REF_H_

#include <cstdint>

#include "kernels/linear.h"

namespace tug::kernels {

// The functions of kernels/linear.h, in the precision of T.
template <typename T>
struct LinearRef {
  WeightOrder order;
  int64_t in;
  int64_t out;

  // Index of W's element (i, o).
  int64_t At(int64_t i, int64_t o) const {
    return order == WeightOrder::kInOut ? i * out + o : o * in + i;
  }

  void Forward(int64_t rows, const T* x, const T* w, const T* bias, T* y) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t o = 0; o < out; ++o) {
        T sum = bias == nullptr ? T(0) : bias[o];
        for (int64_t i = 0; i < in; ++i) sum += x[r * in + i] * w[At(i, o)];
        y[r * out + o] = sum;
      }
    }
  }

  void InputGradient(int64_t rows, const T* dy, const T* w, bool accumulate, T* dx) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < in; ++i) {
        T sum = accumulate ? dx[r * in + i] : T(0);
        for (int64_t o = 0; o < out; ++o) sum += dy[r * out + o] * w[At(i, o)];
        dx[r * in + i] = sum;
      }
    }
  }

  void WeightGradient(int64_t rows, const T* x, const T* dy, bool accumulate, T* dw) const {
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t o = 0; o < out; ++o) {
        T sum = accumulate ? dw[At(i, o)] : T(0);
        for (int64_t r = 0; r < rows; ++r) sum += x[r * in + i] * dy[r * out + o];
        dw[At(i, o)] = sum;
      }
    }
  }
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_LINEAR_REF_H_
