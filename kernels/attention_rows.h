#ifndef TUG_KERNELS_ATTENTION_ROWS_H_
#define TUG_KERNELS_ATTENTION_ROWS_H_

// What attention does between its products, a query at a time, for its .cc files. FP32 inside; T is
// float or Bf16, rounded once. On the calling thread. Thread-safe.

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/dropout_keeper.h"

namespace tug::kernels {

// Which elements of a query's row are dropped: key j of the row is element 64 first_block + j of
// the sample (kernels/dropout.h).
struct DropoutRow {
  DropoutKeeper keeper;
  uint32_t sample = 0;
  uint32_t first_block = 0;
};

// log(sum over i < visible of exp(scale * row[i])).
float LogSumExpRow(int64_t visible, float scale, const float* row);

// out = dropout(exp(scale * scores - lse)) in [0, visible), zeros up to count. T = float: may be in
// place.
template <typename T>
void ProbabilitiesRow(const DropoutRow& dropout, int64_t visible, int64_t count, float scale,
                      float lse, const float* scores, T* out);

// With P = exp(scale * row - lse), zeros from `visible` on, and dP = dropout'(dp):
//   row      [count], becomes P
//   dp       [count], the gradient of dropout(P); with dropout it becomes dP
//   dscores  [count] = scale P (dP - sum dP P), the gradient of the scores; may be dp
//   dropped  [count] = dropout(P). T = float without dropout: not written, it is `row`.
template <typename T>
void GradientsRow(const DropoutRow& dropout, int64_t visible, int64_t count, float scale, float lse,
                  float* row, float* dp, T* dscores, T* dropped);

// out[0 .. dim) = softmax(scale * q k^T) v over `keys` rows of k and v, `stride` apart.
// p: scratch [keys]
void OneQuery(int64_t keys, int64_t dim, int64_t stride, float scale, const float* q,
              const float* k, const float* v, float* p, float* out);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_ROWS_H_
