#ifndef TUG_KERNELS_DROPOUT_H_
#define TUG_KERNELS_DROPOUT_H_

#include <array>
#include <cstdint>

#include "base/philox.h"
#include "base/thread_pool.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// Names a dropout mask. Whether an element is kept is a pure function of (seed, step, sample, site,
// element): never of the thread, the process, the micro-batch or the tensor's address. Nothing is
// stored: the backward pass makes the same mask again.
struct DropoutKey {
  uint64_t seed = 0;  // of the job; the low 56 bits count
  uint32_t step = 0;
  uint32_t sample = 0;  // index within the step's global batch of the tensor's first sample; the
                        // next is sample + 1
  uint32_t site = 0;  // which dropout of the model: one number for each (layer, place in the layer)
};

// The Philox counter and key of 64 consecutive elements. Element e of a sample takes word (e / 16)
// % 4 of Philox4x32(counter of (e / 64, e % 16), key): four words of 16 counters, so that vectors
// need no shuffling.
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

// Of the functions below: T is float or Bf16; computed in FP32, rounded once.

// y = residual + dropout(x), dropout(x) = keep ? x / (1 - p) : 0.
// Paper: Srivastava et al. 2014, in its inverted form: nothing to do at evaluation (p = 0, or do
// not call).
//   x, y       [samples][elements_per_sample]; y may be x or residual itself
//   residual   the same shape, or nullptr: none
// REQUIRES: 0 <= p < 1; elements_per_sample <= 2^34.
// p == 0 is a plain sum or copy. Thread-safe for calls with different pools.
template <typename T>
void DropoutAdd(ThreadPool& pool, int64_t samples, int64_t elements_per_sample, const T* x,
                const T* residual, float p, const DropoutKey& key, T* y);

// y = residual + dropout(x + bias): the same in one pass, with the bias of the product that made x.
//   bias   [width], or nullptr: none. Added to every row of `width`.
// REQUIRES: also that width divides elements_per_sample.
template <typename T>
void BiasDropoutAdd(ThreadPool& pool, int64_t samples, int64_t elements_per_sample, int64_t width,
                    const T* x, const float* bias, const T* residual, float p,
                    const DropoutKey& key, T* y);

// dx = keep ? dy / (1 - p) : 0.   dy, dx [samples][elements_per_sample]; dx may be dy itself.
// The same requirements; `key` as in the forward pass.
template <typename T>
void DropoutBackward(ThreadPool& pool, int64_t samples, int64_t elements_per_sample, const T* dy,
                     float p, const DropoutKey& key, T* dx);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_DROPOUT_H_
