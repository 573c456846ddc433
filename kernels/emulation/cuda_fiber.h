// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMULATION_CUDA_FIBER_H_
#define TUG_KERNELS_EMULATION_CUDA_FIBER_H_

#include <csetjmp>
#include <cstddef>

#include <ucontext.h>

namespace tug::kernels::emulation {

// A coroutine with its own stack, switched explicitly on the OS thread that created it. Supports
// the address and thread sanitizers. A switch takes some 10 ns: no system call.
class Fiber {
 public:
  // Represents the OS thread's own flow of control, which is already running.
  Fiber();
  // Runs main(argument), which must never return, from the first SwitchTo on, on its own stack with
  // an inaccessible page below it.
  Fiber(void (*main)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Switches from this fiber, which must be running, to `other`; returns when another fiber
  // switches back.
  void SwitchTo(Fiber& other);

  // Forgets its position: the next switch to it calls `main` again. Objects on its stack are not
  // destroyed.
  // REQUIRES: it is not running, and was created with a `main`.
  void Restart();

 private:
  static void Begin(unsigned high, unsigned low);
  void Finish();  // completes a switch, on the side switched to

  void (*const main_)(void*) = nullptr;
  void* const argument_ = nullptr;
  std::byte* stack_ = nullptr;  // lowest usable byte
  size_t stack_bytes_ = 0;
  bool started_ = true;
  ucontext_t context_;
  jmp_buf at_;
  void* sanitizer_state_ = nullptr;
};

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_EMULATION_CUDA_FIBER_H_
