#ifndef TUG_KERNELS_CUDA_FIBER_H_
#define TUG_KERNELS_CUDA_FIBER_H_

#include <csetjmp>
#include <cstddef>

#include <ucontext.h>

namespace tug::kernels::emulation {

// A flow of control that is switched to and from by hand, on one OS thread (that which made it).
// Known to the address and thread sanitizers. A switch costs some 10 ns: no system call.
class Fiber {
 public:
  // The flow of control that runs already: the OS thread's own.
  Fiber();
  // Runs main(argument), which never returns, from the first SwitchTo on; on a stack of its own
  // with an inaccessible page below it.
  Fiber(void (*main)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From this one, which runs, to another; returns when somebody switches back.
  void SwitchTo(Fiber& other);

  // Forgets where it was: the next switch to it calls `main` again. What lay on its stack is not
  // destroyed. REQUIRES: it does not run, and was made with a `main`.
  void Restart();

 private:
  static void Begin(unsigned high, unsigned low);
  void Finish();  // of a switch, on the side that it leads to

  void (*const main_)(void*) = nullptr;
  void* const argument_ = nullptr;
  std::byte* stack_ = nullptr;  // the lowest byte that may be used
  size_t stack_bytes_ = 0;
  bool started_ = true;
  ucontext_t context_;
  jmp_buf at_;
  void* sanitizer_state_ = nullptr;
};

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_CUDA_FIBER_H_
