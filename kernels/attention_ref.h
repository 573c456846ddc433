#ifndef TUG_KERNELS_ATTENTION_REF_H_
#define TUG_KERNELS_ATTENTION_REF_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/attention.h"

namespace tug::kernels {

// dropout(sample, element) = 1 / (1 - p) where kept, else 0; for the element numbers see
// kernels/attention.h.
using AttentionDropoutRef = std::function<double(int64_t sample, int64_t element)>;

inline int64_t AttentionElementRef(const AttentionShape& s, int64_t head, int64_t query,
                                   int64_t key) {
  return (head * s.seq + query) * ((s.seq + 63) / 64 * 64) + key;
}

// CausalAttentionForward of kernels/attention.h, one query at a time. probs is 0 for keys after the
// query.
template <typename T>
void CausalAttentionForwardRef(const AttentionShape& s, const T* qkv,
                               const AttentionDropoutRef& dropout, T* probs, T* out) {
  const int64_t c = s.width();
  const T scale = T(1) / std::sqrt(T(s.head_dim));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.seq; ++i) {
        const T* q = qkv + (b * s.seq + i) * 3 * c + h * s.head_dim;
        T* p = probs + ((b * s.heads + h) * s.seq + i) * s.seq;
        T* o = out + (b * s.seq + i) * c + h * s.head_dim;
        std::fill(p, p + s.seq, T(0));
        std::fill(o, o + s.head_dim, T(0));
        T max = -INFINITY;
        for (int64_t j = 0; j <= i; ++j) {
          const T* k = qkv + (b * s.seq + j) * 3 * c + c + h * s.head_dim;
          for (int64_t d = 0; d < s.head_dim; ++d) p[j] += q[d] * k[d] * scale;
          max = std::max(max, p[j]);
        }
        T sum = 0;
        for (int64_t j = 0; j <= i; ++j) sum += p[j] = std::exp(p[j] - max);
        for (int64_t j = 0; j <= i; ++j) {
          p[j] /= sum;
          const T* v = qkv + (b * s.seq + j) * 3 * c + 2 * c + h * s.head_dim;
          const T weight = p[j] * T(dropout(b, AttentionElementRef(s, h, i, j)));
          for (int64_t d = 0; d < s.head_dim; ++d) o[d] += weight * v[d];
        }
      }
    }
  }
}

// CausalAttentionBackward: per query i, with w_j = dropout_j p_j and o = sum_j w_j v_j,
//   dv_j += w_j do;  dp_j = dropout_j (do . v_j);  ds_j = p_j (dp_j - sum_l dp_l p_l) scale
//   dq_i += ds_j k_j;  dk_j += ds_j q_i.
template <typename T>
void CausalAttentionBackwardRef(const AttentionShape& s, const T* dout, const T* qkv,
                                const T* probs, const AttentionDropoutRef& dropout, T* dqkv) {
  const int64_t c = s.width();
  const T scale = T(1) / std::sqrt(T(s.head_dim));
  std::fill(dqkv, dqkv + s.qkv_size(), T(0));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.seq; ++i) {
        const T* p = probs + ((b * s.heads + h) * s.seq + i) * s.seq;
        const T* d_o = dout + (b * s.seq + i) * c + h * s.head_dim;
        const int64_t q_at = (b * s.seq + i) * 3 * c + h * s.head_dim;
        std::vector<T> dp(i + 1, T(0));
        T dot = 0;
        for (int64_t j = 0; j <= i; ++j) {
          const int64_t v_at = (b * s.seq + j) * 3 * c + 2 * c + h * s.head_dim;
          const T factor = T(dropout(b, AttentionElementRef(s, h, i, j)));
          for (int64_t d = 0; d < s.head_dim; ++d) {
            dqkv[v_at + d] += factor * p[j] * d_o[d];
            dp[j] += factor * d_o[d] * qkv[v_at + d];
          }
          dot += dp[j] * p[j];
        }
        for (int64_t j = 0; j <= i; ++j) {
          const int64_t k_at = (b * s.seq + j) * 3 * c + c + h * s.head_dim;
          const T ds = p[j] * (dp[j] - dot) * scale;
          for (int64_t d = 0; d < s.head_dim; ++d) {
            dqkv[q_at + d] += ds * qkv[k_at + d];
            dqkv[k_at + d] += ds * qkv[q_at + d];
          }
        }
      }
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_REF_H_
