// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulation/cuda_fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tug::kernels::emulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = size_t{256} << 10;  // instrumented frames are larger
#else
constexpr size_t kStackBytes = size_t{64} << 10;
#endif

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::Fiber() {
#if defined(__SANITIZE_THREAD__)
  sanitizer_state_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*main)(void*), void* argument)
    : main_(main), argument_(argument), stack_bytes_(kStackBytes) {
  void* const mapped = mmap(nullptr, stack_bytes_ + PageBytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TUG_CHECK(mapped != MAP_FAILED) << "no memory for a fiber's stack";
  TUG_CHECK_EQ(mprotect(mapped, PageBytes(), PROT_NONE), 0);
  stack_ = static_cast<std::byte*>(mapped) + PageBytes();
#if defined(__SANITIZE_THREAD__)
  sanitizer_state_ = __tsan_create_fiber(0);
#endif
  Restart();
}

Fiber::~Fiber() {
  if (main_ == nullptr) return;
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(sanitizer_state_);
#endif
  munmap(stack_ - PageBytes(), stack_bytes_ + PageBytes());
}

void Fiber::Restart() {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, stack_bytes_);
  sanitizer_state_ = nullptr;
#endif
  TUG_CHECK_EQ(getcontext(&context_), 0);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = stack_bytes_;
  context_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::Begin), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  started_ = false;
}

void Fiber::Begin(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fiber*>((static_cast<uintptr_t>(high) << 32) | low);
  self->Finish();
  self->main_(self->argument_);
}

void Fiber::Finish() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_state_, nullptr, nullptr);
#endif
}

#if defined(__SANITIZE_THREAD__)

// ThreadSanitizer's longjmp does not support other stacks.
void Fiber::SwitchTo(Fiber& other) {
  __tsan_switch_to_fiber(other.sanitizer_state_, 0);
  TUG_CHECK_EQ(swapcontext(&context_, &other.context_), 0);
}

#else

void Fiber::SwitchTo(Fiber& other) {
#if defined(__SANITIZE_ADDRESS__)
  if (main_ == nullptr && stack_ == nullptr) {  // find the OS thread's own stack
    pthread_attr_t attributes;
    void* lowest = nullptr;
    TUG_CHECK_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
    TUG_CHECK_EQ(pthread_attr_getstack(&attributes, &lowest, &stack_bytes_), 0);
    pthread_attr_destroy(&attributes);
    stack_ = static_cast<std::byte*>(lowest);
  }
  __sanitizer_start_switch_fiber(&sanitizer_state_, other.stack_, other.stack_bytes_);
#endif
  if (_setjmp(at_) == 0) {
    if (other.started_) _longjmp(other.at_, 1);
    other.started_ = true;
    setcontext(&other.context_);
  }
  Finish();
}

#endif

}  // namespace tug::kernels::emulation
