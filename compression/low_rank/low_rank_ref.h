// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_LOW_RANK_LOW_RANK_REF_H_
#define TUG_COMPRESSION_LOW_RANK_LOW_RANK_REF_H_

// FP64 reference for low_rank.h. Factors column by column.

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "compression/low_rank/low_rank.h"

namespace tug {

inline std::vector<double> TimesFactorRef(const MatrixShape& shape, std::span<const float> m,
                                          std::span<const double> q, int64_t rank) {
  std::vector<double> p(static_cast<size_t>(rank * shape.rows()));
  for (int64_t k = 0; k < rank; ++k) {
    for (int64_t i = 0; i < shape.elements; ++i) {
      p[k * shape.rows() + i / shape.columns] += m[i] * q[k * shape.columns + i % shape.columns];
    }
  }
  return p;
}

inline std::vector<double> TransposedTimesFactorRef(const MatrixShape& shape,
                                                    std::span<const float> m,
                                                    std::span<const double> p, int64_t rank) {
  std::vector<double> q(static_cast<size_t>(rank * shape.columns));
  for (int64_t k = 0; k < rank; ++k) {
    for (int64_t i = 0; i < shape.elements; ++i) {
      q[k * shape.columns + i % shape.columns] += m[i] * p[k * shape.rows() + i / shape.columns];
    }
  }
  return q;
}

// REQUIRES: independent columns.
inline void OrthonormaliseRef(int64_t rows, int64_t rank, std::vector<double>& p) {
  const auto dot = [&](int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += p[a * rows + i] * p[b * rows + i];
    return sum;
  };
  for (int64_t k = 0; k < rank; ++k) {
    for (int64_t other = 0; other < k; ++other) {
      const double along = dot(other, k);
      for (int64_t i = 0; i < rows; ++i) p[k * rows + i] -= along * p[other * rows + i];
    }
    const double norm = std::sqrt(dot(k, k));
    for (int64_t i = 0; i < rows; ++i) p[k * rows + i] /= norm;
  }
}

inline std::vector<double> ExpandFactorsRef(const MatrixShape& shape, std::span<const double> p,
                                            std::span<const double> q, int64_t rank) {
  std::vector<double> elements(static_cast<size_t>(shape.elements));
  for (int64_t i = 0; i < shape.elements; ++i) {
    for (int64_t k = 0; k < rank; ++k) {
      elements[i] +=
          p[k * shape.rows() + i / shape.columns] * q[k * shape.columns + i % shape.columns];
    }
  }
  return elements;
}

}  // namespace tug

#endif  // TUG_COMPRESSION_LOW_RANK_LOW_RANK_REF_H_
