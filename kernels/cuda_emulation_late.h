#ifndef TUG_KERNELS_CUDA_EMULATION_LATE_H_
#define TUG_KERNELS_CUDA_EMULATION_LATE_H_

#include <cstdint>

#include "absl/status/status.h"

// Whether emulated streams do at once what they are given (the default: what goes wrong does so
// where it is called), or late, as a GPU does: when somebody must see what comes of it. So a stream
// that does not wait for another's event, or a host that reads or changes memory too early, gets
// wrong bits.
//
// What is done is what the one who waits needs: the stream up to there and, before each wait for an
// event, the other stream up to its record. Beyond need, which streams go on at each call is drawn
// from a seed: each of them is for some time lazy, steady or eager. So over seeds every order of
// what is queued can happen that CUDA permits, and those with one stream far behind another often
// do. Copies from and to memory that is neither pinned nor registered may block or not
// (kernels/device.h); which is drawn too. Work is done as a whole: two kernels do not overlap.
//
// TUG_EMULATED_STREAMS=late in the environment makes streams late from the beginning, in any test
// (--test_env, or `late` of tug_cuda_test). LateStreams does so within a test that is about order.
namespace tug::kernels::emulation {

bool StreamsAreLate();

// Of all draws from here on. 0: nothing is drawn, and nothing done beyond need: all is as late as
// it can be. 1 at first; where the environment makes streams late and nobody calls this, one that
// is drawn and printed when the first draw is made.
void SeedStreams(uint64_t seed);

// Does all that is queued. The first error that nobody was told of; devices forget theirs.
absl::Status FinishStreams();

// Makes streams late while it lives, with this seed; they go on as before when it is gone.
// REQUIRES: no other thread uses them when it comes or goes.
class LateStreams {
 public:
  explicit LateStreams(uint64_t seed);
  // Does all that is queued.
  ~LateStreams();
  LateStreams(const LateStreams&) = delete;
  LateStreams& operator=(const LateStreams&) = delete;

 private:
  bool were_late_;
  uint64_t seed_;  // of what would have been drawn before
};

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_CUDA_EMULATION_LATE_H_
