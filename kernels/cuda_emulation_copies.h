#ifndef TUG_KERNELS_CUDA_EMULATION_COPIES_H_
#define TUG_KERNELS_CUDA_EMULATION_COPIES_H_

namespace tug::kernels::emulation {

// While it is on, a stream makes copies between device memory and host memory that is no
// PinnedBuffer's as late as streams and events allow: when somebody waits for them. So whoever does
// not wait gets what was there before. Kernels are run at once all the same: a stream that has some
// must have its copies waited for before. Off at first; for one thread.
void HoldCopies(bool hold);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_CUDA_EMULATION_COPIES_H_
