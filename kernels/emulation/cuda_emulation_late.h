// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMULATION_CUDA_EMULATION_LATE_H_
#define TUG_KERNELS_EMULATION_CUDA_EMULATION_LATE_H_

#include <cstdint>

#include "absl/status/status.h"

// Controls whether emulated streams execute work immediately (the default: faults appear in the
// call that causes them) or late, as a GPU does: only when a caller needs the result. Then a stream
// that does not wait for another's event, or a host that reads or changes memory too early, gets
// wrong bits.
//
// A wait executes what it needs: the stream up to that point and, before each wait for an event,
// the other stream up to its record. Beyond that, each call makes streams progress at random, from
// a seed: each stream is for some time lazy, steady or eager. So over seeds every order that CUDA
// permits can happen, and orders with one stream far behind another happen often. Copies from and
// to memory that is neither pinned nor registered may block or not (kernels/cuda/device/device.h),
// which is random, too. Each piece of work is atomic: two kernels do not overlap.
//
// TUG_EMULATED_STREAMS=late in the environment makes streams late from the start, in any test
// (--test_env, or `late` of tug_cuda_test). LateStreams does so within a test that is about order.
namespace tug::kernels::emulation {

bool StreamsAreLate();

// Seeds all later random choices. 0: no random choices and no progress beyond need: everything is
// as late as possible. The seed is initially 1; if the environment makes streams late and this is
// not called, a random seed is chosen and printed at the first random choice.
void SeedStreams(uint64_t seed);

// Executes all queued work. Returns the first error not yet reported; devices forget their errors.
absl::Status FinishStreams();

// Makes streams late during its lifetime, with this seed; restores the previous mode when
// destroyed.
// REQUIRES: no other thread uses streams during construction and destruction.
class LateStreams {
 public:
  explicit LateStreams(uint64_t seed);
  // Executes all queued work.
  ~LateStreams();
  LateStreams(const LateStreams&) = delete;
  LateStreams& operator=(const LateStreams&) = delete;

 private:
  bool were_late_;
  uint64_t seed_;  // restores the previous random sequence
};

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_EMULATION_CUDA_EMULATION_LATE_H_
