// SPDX-License-Identifier: Apache-2.0
// Makes Abseil's waits follow the monotonic clock.
//
// Debian's Abseil (20220623) waits until a wall-clock time: if the clock is set back by an hour,
// every wait with a timeout takes an hour longer, including gRPC's timers. Newer versions do not
// have this problem. All waits of Mutex, CondVar and Notification call two functions that Abseil
// declares weak so that programs can replace them; this file replaces them.
// tests/surroundings_test.cc checks that the replacements are in effect.
//
// A thread's semaphore is the first word of its ThreadIdentity::WaiterState, which Abseil reserves
// for this purpose.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "absl/synchronization/internal/create_thread_identity.h"
#include "absl/synchronization/internal/kernel_timeout.h"
#include "absl/synchronization/internal/per_thread_sem.h"

namespace {

using absl::base_internal::ThreadIdentity;
using absl::synchronization_internal::KernelTimeout;

constexpr int64_t kSecondNs = 1'000'000'000;

std::atomic<int32_t>& TokensOf(ThreadIdentity* identity) {
  static_assert(sizeof(std::atomic<int32_t>) <= sizeof(identity->waiter_state.data));
  return *reinterpret_cast<std::atomic<int32_t>*>(identity->waiter_state.data);
}

int64_t NowNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

// End of a wait, on the monotonic clock. A wait may call this several times with the same timeout;
// only the first call converts it with the wall clock.
int64_t DeadlineNs(KernelTimeout timeout) {
  thread_local int64_t known_wall = 0, known_deadline = 0;
  const timespec at = timeout.MakeAbsTimespec();
  const int64_t wall = at.tv_sec * kSecondNs + at.tv_nsec;
  if (wall != known_wall) {
    const int64_t now = NowNs(CLOCK_MONOTONIC);
    const int64_t left = wall - NowNs(CLOCK_REALTIME);
    known_wall = wall;
    known_deadline = now + std::min(left, std::numeric_limits<int64_t>::max() - now);
  }
  return known_deadline;
}

bool TakeToken(std::atomic<int32_t>& tokens) {
  int32_t count = tokens.load(std::memory_order_relaxed);
  while (count > 0) {
    if (tokens.compare_exchange_weak(count, count - 1, std::memory_order_acquire)) return true;
  }
  return false;
}

}  // namespace

extern "C" {

void ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemPost)(ThreadIdentity* identity) {
  std::atomic<int32_t>& tokens = TokensOf(identity);
  if (tokens.fetch_add(1, std::memory_order_release) != 0) return;
  const int error = errno;
  syscall(SYS_futex, &tokens, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
  errno = error;
}

bool ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)(KernelTimeout timeout) {
  ThreadIdentity* const identity =
      absl::synchronization_internal::GetOrCreateCurrentThreadIdentity();
  std::atomic<int32_t>& tokens = TokensOf(identity);
  timespec until{};
  if (timeout.has_timeout()) {
    const int64_t deadline = std::max<int64_t>(DeadlineNs(timeout), 0);
    until = {.tv_sec = deadline / kSecondNs, .tv_nsec = deadline % kSecondNs};
  }
  const int error = errno;
  bool taken = false;
  while (!(taken = TakeToken(tokens))) {
    // Without FUTEX_CLOCK_REALTIME the deadline is on the monotonic clock.
    const long woken =
        syscall(SYS_futex, &tokens, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
                timeout.has_timeout() ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (woken != 0 && errno == ETIMEDOUT) {
      taken = TakeToken(tokens);
      break;
    }
  }
  errno = error;
  return taken;
}

}  // extern "C"
