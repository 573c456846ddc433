// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_ATTENTION_REF_H_
#define TUG_KERNELS_REFERENCE_ATTENTION_REF_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/attention.h"

namespace tug::kernels {

// dropout(sample, element) = 1 / (1 - p) for a kept element, else 0. Element numbers: see
// kernels/attention.h.
using AttentionDropoutRef = std::function<double(int64_t sample, int64_t element)>;

inline int64_t AttentionElementRef(const AttentionShape& s, int64_t head, int64_t query,
                                   int64_t key) {
  return (head * s.queries + query) * ((s.keys + 63) / 64 * 64) + key;
}

// Query i of sample b reaches the keys [0, result).
inline int64_t AttentionReachRef(const AttentionShape& s, int64_t b, int64_t i) {
  const int64_t count = s.key_counts == nullptr ? s.keys : s.key_counts[b];
  return s.causal ? std::min(i + 1, count) : count;
}

// Probabilities of the keys that query i of head h of sample b reaches, and log(sum exp(score))
// over them.
template <typename T>
std::vector<T> AttentionProbabilitiesRef(const AttentionShape& s,
                                         const AttentionOperands<const T>& in, int64_t b, int64_t h,
                                         int64_t i, T& log_sum_exp) {
  const T scale = T(1) / std::sqrt(T(s.head_dim));
  const T* q = in.q + (b * s.queries + i) * in.q_stride + h * s.head_dim;
  std::vector<T> p(AttentionReachRef(s, b, i), T(0));
  T max = -INFINITY;
  for (size_t j = 0; j < p.size(); ++j) {
    const T* k = in.k + (b * s.keys + j) * in.kv_stride + h * s.head_dim;
    for (int64_t d = 0; d < s.head_dim; ++d) p[j] += q[d] * k[d] * scale;
    max = std::max(max, p[j]);
  }
  T sum = 0;
  for (const T score : p) sum += std::exp(score - max);
  log_sum_exp = max + std::log(sum);
  for (T& x : p) x = std::exp(x - log_sum_exp);
  return p;
}

// AttentionForward of kernels/attention.h, query by query.
template <typename T>
void AttentionForwardRef(const AttentionShape& s, const AttentionOperands<const T>& in,
                         const AttentionDropoutRef& dropout, T* out, T* log_sum_exp) {
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        T& lse = log_sum_exp[(b * s.heads + h) * s.queries + i];
        const std::vector<T> p = AttentionProbabilitiesRef(s, in, b, h, i, lse);
        T* o = out + (b * s.queries + i) * s.width() + h * s.head_dim;
        std::fill(o, o + s.head_dim, T(0));
        for (size_t j = 0; j < p.size(); ++j) {
          const T* v = in.v + (b * s.keys + j) * in.kv_stride + h * s.head_dim;
          const T weight = p[j] * T(dropout(b, AttentionElementRef(s, h, i, j)));
          for (int64_t d = 0; d < s.head_dim; ++d) o[d] += weight * v[d];
        }
      }
    }
  }
}

// AttentionBackward: per query i, with w_j = dropout_j p_j and o = sum_j w_j v_j,
//   dv_j += w_j do;  dp_j = dropout_j (do . v_j);  ds_j = p_j (dp_j - sum_l dp_l p_l) scale
//   dq_i += ds_j k_j;  dk_j += ds_j q_i.
// Adds to `gradient`, which the caller has zeroed.
template <typename T>
void AttentionBackwardRef(const AttentionShape& s, const T* dout,
                          const AttentionOperands<const T>& in, const AttentionDropoutRef& dropout,
                          const AttentionOperands<T>& gradient) {
  const T scale = T(1) / std::sqrt(T(s.head_dim));
  const auto row = [&](auto* matrix, int64_t at, int64_t stride, int64_t h) {
    return matrix + at * stride + h * s.head_dim;
  };
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        T lse = 0;
        const std::vector<T> p = AttentionProbabilitiesRef(s, in, b, h, i, lse);
        const int64_t query = b * s.queries + i;
        const T* d_o = row(dout, query, s.width(), h);
        std::vector<T> dp(p.size(), T(0));
        T dot = 0;
        for (size_t j = 0; j < p.size(); ++j) {
          const int64_t key = b * s.keys + static_cast<int64_t>(j);
          const T* v = row(in.v, key, in.kv_stride, h);
          T* dv = row(gradient.v, key, gradient.kv_stride, h);
          const T factor = T(dropout(b, AttentionElementRef(s, h, i, j)));
          for (int64_t d = 0; d < s.head_dim; ++d) {
            dv[d] += factor * p[j] * d_o[d];
            dp[j] += factor * d_o[d] * v[d];
          }
          dot += dp[j] * p[j];
        }
        for (size_t j = 0; j < p.size(); ++j) {
          const int64_t key = b * s.keys + static_cast<int64_t>(j);
          const T* k = row(in.k, key, in.kv_stride, h);
          const T* q = row(in.q, query, in.q_stride, h);
          T* dk = row(gradient.k, key, gradient.kv_stride, h);
          T* dq = row(gradient.q, query, gradient.q_stride, h);
          const T ds = p[j] * (dp[j] - dot) * scale;
          for (int64_t d = 0; d < s.head_dim; ++d) {
            dq[d] += ds * k[d];
            dk[d] += ds * q[d];
          }
        }
      }
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_ATTENTION_REF_H_
