// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CPU_ATTENTION_ROWS_H_
#define TUG_KERNELS_CPU_ATTENTION_ROWS_H_

// The work of attention between its products, one query at a time, for its .cc files. FP32 inside;
// T is float or Bf16, rounded once. Runs on the calling thread. Thread-safe.

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/dropout_keeper.h"

namespace tug::kernels {

// Dropped elements of a query's row: key j of the row is element 64 first_block + j of the sample
// (kernels/dropout.h).
struct DropoutRow {
  DropoutKeeper keeper;
  uint32_t sample = 0;
  uint32_t first_block = 0;
};

// Row of scores of one query.
struct ScoreRow {
  DropoutRow dropout;
  int64_t visible;  // the query reaches keys [0, visible)
  int64_t count;    // elements of the row; those from `visible` on are filled with zeros
  float scale;
  float lse;  // log_sum_exp
};

// log(sum over i < visible of exp(scale * row[i])).
float LogSumExpRow(int64_t visible, float scale, const float* row);

// out = dropout(exp(scale * scores - lse)) in [0, visible), zeros up to count. If T = float, out
// may be scores.
template <typename T>
void ProbabilitiesRow(const ScoreRow& of, const float* scores, T* out);

// With P = exp(scale * row - lse), zeros from `visible` on, and dP = dropout'(dp):
//   row      [count], becomes P
//   dp       [count], the gradient of dropout(P); with dropout it becomes dP
//   dscores  [count] = scale P (dP - sum dP P), the gradient of the scores; may be dp
//   dropped  [count] = dropout(P). T = float without dropout: not written, `row` has it.
template <typename T>
void GradientsRow(const ScoreRow& of, float* row, float* dp, T* dscores, T* dropped);

// AttentionOfOneQuery for one head.   p: scratch [keys]
void OneQuery(const OneQueryArgs& args, int64_t head, float* p);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CPU_ATTENTION_ROWS_H_
