// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_DROPOUT_H_
#define TUG_KERNELS_DROPOUT_H_

#include <array>
#include <cstdint>

#include "base/cpu/thread_pool.h"
#include "base/philox.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// Identifies a dropout mask. Whether an element is kept is a pure function of (seed, step, sample,
// site, element), independent of thread, process, micro-batch and address of the tensor. No mask is
// stored: the backward pass recomputes it.
struct DropoutKey {
  uint64_t seed = 0;  // seed of the job; only the low 56 bits are used
  uint32_t step = 0;
  uint32_t sample = 0;  // index of the tensor's first sample within the step's global batch; the
                        // next one has sample + 1
  uint32_t site = 0;    // dropout of the model: unique per (layer, position in the layer)
};

// Philox counter and key of 64 consecutive elements. Element e of a sample is decided by word (e /
// 16) % 4 of Philox4x32(counter of (e / 64, e % 16), key): 16 counters give four words each, so
// that vector code needs no shuffles.
inline std::array<uint32_t, 4> DropoutCounter(const DropoutKey& key, uint32_t sample_offset,
                                              uint32_t block, uint32_t lane) {
  return {block * 16 + lane, key.site, key.sample + sample_offset, key.step};
}
inline std::array<uint32_t, 2> DropoutPhiloxKey(const DropoutKey& key) {
  return {static_cast<uint32_t>(key.seed),
          (static_cast<uint32_t>(key.seed >> 32) & 0x00FFFFFFu) |
              (static_cast<uint32_t>(RandomPurpose::kDropout) << 24)};
}

// An element is kept when its 32 random bits are at least this.
// REQUIRES: 0 <= p < 1.
uint32_t DropoutThreshold(float p);

template <typename T, typename B = float>
struct DropoutAddArgs {
  int64_t samples;
  int64_t elements_per_sample;  // at most 2^34
  int64_t width = 0;            // elements of a row; read with a bias only
  const T* x;                   // [samples][elements_per_sample]
  const B* bias = nullptr;      // [width], added to every row; or nullptr: none
  const T* residual = nullptr;  // the shape of x; or nullptr: none
  float p;                      // [0, 1)
  DropoutKey key;
  T* y;  // the shape of x; may be x or residual itself
};

// y = residual + dropout(x + bias), dropout(x) = keep ? x / (1 - p) : 0; `bias` belongs to the
// product that made x. T is float or Bf16; computed in FP32, rounded once.
// Paper: Srivastava et al. 2014, in the inverted form: evaluation needs no scaling (p = 0, or no
// call). The backward pass is dropout with the same key: x = dy, y = dx.
// REQUIRES: with a bias, width divides elements_per_sample.
// p == 0 is a plain sum or copy. Thread-safe for calls with different pools.
template <typename T>
void DropoutAdd(ThreadPool& pool, const DropoutAddArgs<T>& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_DROPOUT_H_
