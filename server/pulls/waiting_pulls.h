// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PULLS_WAITING_PULLS_H_
#define TUG_SERVER_PULLS_WAITING_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/memory/lease.h"
#include "proto/wire.h"

namespace tug {

struct WaitingPull {
  WireHeader header;
  Lease payload;  // Codec::kRuns: list of runs, in the message it came in
};

// Whether one repeats the other: same sender, weights and virtual workers (which may have been
// reassigned since).
bool IsSamePull(const WireHeader& a, const WireHeader& b);

// Pulls that the policy does not serve yet. Each waits at the first of its segments that is not
// ready, and is checked again when that segment advances. Allocates only beyond the previous peak.
// Not thread-safe: owned by one lane.
class WaitingPulls {
 public:
  WaitingPulls(uint32_t segments, uint32_t blocks) : at_segment_(segments), in_block_(blocks) {}

  size_t in_block(uint32_t block) const { return in_block_[block]; }
  // Whether the same pull waits at this segment.
  bool Contains(const WireHeader& header, uint32_t segment) const;
  void Add(WaitingPull pull, uint32_t segment);
  // Removes the sender's kExact pull that begins with the same segment. `first`: id of that
  // segment; `end`: one past the block's last segment.
  void ForgetExact(const WireHeader& header, uint32_t first, uint32_t end);
  // Moves each pull that waits at the segment and satisfies `which(header)` to `look`, which may
  // Add it again. Not reentrant.
  template <typename Look, typename Which>
  void TakeEach(uint32_t segment, Look look, Which which) {
    if (at_segment_[segment].empty()) return;
    std::swap(taken_, at_segment_[segment]);
    for (WaitingPull& pull : taken_) {
      if (!which(pull.header)) {
        at_segment_[segment].push_back(std::move(pull));
        continue;
      }
      --in_block_[pull.header.block];
      look(std::move(pull));
    }
    taken_.clear();
    // Keep the capacity of the emptied list for the segment, so that it need not grow again.
    if (at_segment_[segment].empty()) std::swap(taken_, at_segment_[segment]);
  }
  template <typename Look>
  void TakeEach(uint32_t segment, Look look) {
    TakeEach(segment, look, [](const WireHeader&) { return true; });
  }
  void Clear();
  // Calls `show` with each pull and the segment at which it waits.
  template <typename Show>
  void Look(Show show) const {
    for (uint32_t segment = 0; segment < at_segment_.size(); ++segment) {
      for (const WaitingPull& pull : at_segment_[segment]) show(pull, segment);
    }
  }

 private:
  std::vector<std::vector<WaitingPull>> at_segment_;
  std::vector<size_t> in_block_;
  std::vector<WaitingPull> taken_;
};

}  // namespace tug

#endif  // TUG_SERVER_PULLS_WAITING_PULLS_H_
