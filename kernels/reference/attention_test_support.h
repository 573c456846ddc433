// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_ATTENTION_TEST_SUPPORT_H_
#define TUG_KERNELS_REFERENCE_ATTENTION_TEST_SUPPORT_H_

// Shared by the tests of attention on the CPU and on the GPU: operands and results of the
// reference.

#include <cstdint>
#include <vector>

#include "kernels/reference/attention_ref.h"
#include "kernels/reference/dropout_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {

inline constexpr DropoutKey kKey{.seed = 11, .step = 2, .sample = 9, .site = 4};

inline AttentionDropoutRef DropoutOf(float p) {
  return [p](int64_t sample, int64_t element) {
    const bool keep = p == 0 || DropoutKeepsRef(kKey, static_cast<uint32_t>(sample), element, p);
    return keep ? 1.0 / (1.0 - static_cast<double>(p)) : 0.0;
  };
}

// Self-attention: one matrix of queries, keys and values. Otherwise a matrix of queries, then one
// of keys and values.
template <typename T>
AttentionOperands<T> OperandsIn(const AttentionShape& s, T* data) {
  const int64_t width = s.width();
  if (s.queries == s.keys) return {data, data + width, data + 2 * width, 3 * width, 3 * width};
  T* const kv = data + s.batch * s.queries * width;
  return {data, kv, kv + width, width, 2 * width};
}

inline int64_t OperandsSize(const AttentionShape& s) {
  return s.batch * (s.queries + 2 * s.keys) * s.width();
}
inline int64_t OutSize(const AttentionShape& s) { return s.batch * s.queries * s.width(); }

template <typename T>
std::vector<T> RandomOperands(const AttentionShape& shape) {
  return As<T>(RandomFloats(OperandsSize(shape), 1, 2.0f));
}
template <typename T>
std::vector<T> RandomGradient(const AttentionShape& shape) {
  return As<T>(RandomFloats(OutSize(shape), 2));
}

template <typename T>
struct AttentionResult {
  std::vector<T> out, gradient;
  std::vector<float> log_sum_exp;
};

inline AttentionResult<double> RunReference(const AttentionShape& shape,
                                            const std::vector<double>& operands,
                                            const std::vector<double>& dout, float p,
                                            std::vector<double>& log_sum_exp) {
  AttentionResult<double> r{std::vector<double>(OutSize(shape)),
                            std::vector<double>(OperandsSize(shape))};
  log_sum_exp.resize(shape.stats_size());
  const auto in = OperandsIn(shape, operands.data());
  AttentionForwardRef<double>(shape, in, DropoutOf(p), r.out.data(), log_sum_exp.data());
  AttentionBackwardRef<double>(shape, dout.data(), in, DropoutOf(p),
                               OperandsIn(shape, r.gradient.data()));
  return r;
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_ATTENTION_TEST_SUPPORT_H_
