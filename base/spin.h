#ifndef TUG_BASE_SPIN_H_
#define TUG_BASE_SPIN_H_

#include <atomic>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "base/time_source.h"

namespace tug {

// Between two looks at what another core is to write.
inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// How long to look before one sleeps: about what sleeping and being woken cost. Not at all on one
// core, where whoever is looked for cannot run meanwhile.
inline absl::Duration DefaultSpin() {
  return std::thread::hardware_concurrency() > 1 ? absl::Microseconds(20) : absl::ZeroDuration();
}

// Looks until it sees something, or for `spin` from `begin`, which has just been read from `time`;
// 64 times at the least, and no more if `begin` is long past. Returns its last reading of the clock
// if it has; it reads while nothing is there to be done, not once it is. Between its looks it
// offers the core to others: whoever is looked for may be waiting for it.
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

#endif  // TUG_BASE_SPIN_H_
