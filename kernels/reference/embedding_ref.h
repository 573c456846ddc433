// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_EMBEDDING_REF_H_
#define TUG_KERNELS_REFERENCE_EMBEDDING_REF_H_

#include <cstdint>

#include "kernels/embedding.h"

namespace tug::kernels {

// EmbeddingForward and EmbeddingBackward of kernels/embedding.h, in the precision of T.
template <typename T>
void EmbeddingForwardRef(const EmbeddingForwardArgs<T, T>& a) {
  for (int64_t row = 0; row < a.samples * a.seq; ++row) {
    for (int64_t i = 0; i < a.width; ++i) {
      a.out[row * a.width + i] =
          a.wte[a.tokens[row] * a.width + i] + a.wpe[row % a.seq * a.width + i];
    }
  }
}

template <typename T>
void EmbeddingBackwardRef(const EmbeddingBackwardArgs<T, T>& a) {
  for (int64_t row = 0; row < a.samples * a.seq; ++row) {
    for (int64_t i = 0; i < a.width; ++i) {
      a.dwte[a.tokens[row] * a.width + i] += a.dout[row * a.width + i];
      a.dwpe[row % a.seq * a.width + i] += a.dout[row * a.width + i];
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_EMBEDDING_REF_H_
