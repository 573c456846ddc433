// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CURRENT_ACTIVITY_H_
#define TUG_WORKER_CURRENT_ACTIVITY_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace tug {

// Activity of a worker's compute thread, for monitoring: the thread stores two numbers on each
// change, without waiting. One thread sets, any may get; a get during a set may pair an activity
// with the start time of the other one.
class CurrentActivity {
 public:
  enum class Doing : uint8_t {
    kResting,    // no step may begin
    kComputing,  // `block`
    kReading,    // samples
    kWaiting,    // for weights of `block`, or for memory that its pushes hold
  };
  struct Activity {
    Doing doing = Doing::kResting;
    uint32_t block = 0;  // below 2^20
    uint64_t clock = 0;  // the step; below 2^40
    absl::Time since = absl::InfiniteFuture();
  };

  void Set(Doing doing, uint32_t block, uint64_t clock, absl::Time now) {
    const uint64_t packed = static_cast<uint64_t>(doing) << 60 | (uint64_t{block} & 0xfffff) << 40 |
                            (clock & 0xffffffffff);
    if (packed == packed_.load(std::memory_order_relaxed)) return;
    since_ns_.store(absl::ToUnixNanos(now), std::memory_order_relaxed);
    packed_.store(packed, std::memory_order_relaxed);
  }

  Activity Get() const {
    const uint64_t packed = packed_.load(std::memory_order_relaxed);
    const int64_t since_ns = since_ns_.load(std::memory_order_relaxed);
    return {static_cast<Doing>(packed >> 60), static_cast<uint32_t>(packed >> 40 & 0xfffff),
            packed & 0xffffffffff,
            since_ns == 0 ? absl::InfiniteFuture() : absl::FromUnixNanos(since_ns)};
  }

 private:
  std::atomic<uint64_t> packed_ = 0;
  std::atomic<int64_t> since_ns_ = 0;
};

}  // namespace tug

#endif  // TUG_WORKER_CURRENT_ACTIVITY_H_
