// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_APPLIED_CLOCKS_H_
#define TUG_SERVER_SYNC_APPLIED_CLOCKS_H_

#include <cstdint>
#include <vector>

namespace tug {

// For BACKUP: records which of a segment's closed clocks include a virtual worker's push, to tell a
// repeated push from one that came too late. Remembers, per virtual worker, the newest applied
// clock and the kRemembered before it. Not thread-safe: owned by one lane.
class AppliedClocks {
 public:
  static constexpr uint64_t kRemembered = 64;
  enum class Answer { kApplied, kNot, kForgotten };

  explicit AppliedClocks(uint32_t virtual_workers) : of_(virtual_workers) {}

  // REQUIRES: `clock` is later than all noted for this virtual worker.
  void Note(uint32_t virtual_worker, uint64_t clock) {
    Of& of = of_[virtual_worker];
    const uint64_t passed = of.any ? clock - of.newest : kRemembered;
    of.before = passed < kRemembered ? of.before << passed | uint64_t{1} << (passed - 1)
                                     : (passed == kRemembered && of.any ? kOldest : 0);
    of.newest = clock;
    of.any = true;
  }

  // REQUIRES: the clock has closed.
  Answer Has(uint32_t virtual_worker, uint64_t clock) const {
    const Of& of = of_[virtual_worker];
    if (!of.any || clock > of.newest) return Answer::kNot;
    if (clock == of.newest) return Answer::kApplied;
    const uint64_t ago = of.newest - clock;
    if (ago > kRemembered) return Answer::kForgotten;
    return (of.before >> (ago - 1) & 1) != 0 ? Answer::kApplied : Answer::kNot;
  }

 private:
  static constexpr uint64_t kOldest = uint64_t{1} << (kRemembered - 1);

  struct Of {
    bool any = false;
    uint64_t newest = 0;
    uint64_t before = 0;  // bit i: clock newest - 1 - i was applied
  };

  std::vector<Of> of_;
};

}  // namespace tug

#endif  // TUG_SERVER_SYNC_APPLIED_CLOCKS_H_
