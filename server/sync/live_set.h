// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_LIVE_SET_H_
#define TUG_SERVER_SYNC_LIVE_SET_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tug {

// Virtual workers that a lane waits for: all of them, except with fault.on_worker_loss SHRINK
// (those assigned to a worker) and `exchange: ALL_REDUCE` (those of the worker paired with the
// server).
class LiveSet {
 public:
  explicit LiveSet(uint32_t virtual_workers) : live_(virtual_workers, true) { Count(); }
  explicit LiveSet(std::vector<bool> live) : live_(std::move(live)) { Count(); }

  uint32_t size() const { return static_cast<uint32_t>(live_.size()); }
  uint32_t count() const { return count_; }
  bool all() const { return count_ == live_.size(); }
  bool has(uint32_t virtual_worker) const { return live_[virtual_worker]; }

  friend bool operator==(const LiveSet&, const LiveSet&) = default;

 private:
  void Count() { count_ = static_cast<uint32_t>(std::count(live_.begin(), live_.end(), true)); }

  std::vector<bool> live_;
  uint32_t count_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_SYNC_LIVE_SET_H_
