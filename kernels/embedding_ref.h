#ifndef TUG_KERNELS_EMBEDDING_REF_H_
#define TUG_KERNELS_EMBEDDING_REF_H_

#include <cstdint>

namespace tug::kernels {

// EmbeddingForward and EmbeddingBackward of kernels/embedding.h, in the precision of T.
template <typename T>
void EmbeddingForwardRef(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                         const T* wte, const T* wpe, T* out) {
  for (int64_t row = 0; row < samples * seq; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      out[row * width + i] = wte[tokens[row] * width + i] + wpe[row % seq * width + i];
    }
  }
}

template <typename T>
void EmbeddingBackwardRef(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                          const T* dout, T* dwte, T* dwpe) {
  for (int64_t row = 0; row < samples * seq; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      dwte[tokens[row] * width + i] += dout[row * width + i];
      dwpe[row % seq * width + i] += dout[row * width + i];
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_EMBEDDING_REF_H_
