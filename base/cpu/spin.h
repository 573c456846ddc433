// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_CPU_SPIN_H_
#define TUG_BASE_CPU_SPIN_H_

#include <atomic>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "base/time_source.h"

namespace tug {

// Pause instruction between two polls of a location that another core writes.
inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// Default spin time before a thread sleeps: about the cost of sleeping and waking. Zero on one
// core, where the awaited thread cannot run meanwhile.
inline absl::Duration DefaultSpin() {
  return std::thread::hardware_concurrency() > 1 ? absl::Microseconds(20) : absl::ZeroDuration();
}

// Polls `look` until it returns true, or until `spin` has passed since `begin`, a fresh reading of
// `time`. Polls at least 64 times, even if `begin` is long past, and reads the clock and yields the
// core every 64 polls: the awaited thread may need it. Returns its last clock reading on success,
// none on timeout.
template <typename Look>
std::optional<absl::Time> SpinFor(const TimeSource& time, absl::Time begin, absl::Duration spin,
                                  const Look& look) {
  constexpr int kLooksBetweenReadings = 64;
  absl::Time now = begin;
  do {
    for (int i = 0; i < kLooksBetweenReadings; ++i) {
      if (look()) return now;
      CpuRelax();
    }
    std::this_thread::yield();
    now = time.Now();
  } while (now < begin + spin);
  return std::nullopt;
}

}  // namespace tug

#endif  // TUG_BASE_CPU_SPIN_H_
