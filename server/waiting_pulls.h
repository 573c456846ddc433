#ifndef TUG_SERVER_WAITING_PULLS_H_
#define TUG_SERVER_WAITING_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/lease.h"
#include "proto/wire.h"

namespace tug {

struct WaitingPull {
  WireHeader header;
  Lease payload;  // Codec::kRuns: the list of runs, in the message it came in
};

// Whether the one is the other again: the same sender wants the same weights for
// the same virtual workers (it may carry others by now).
bool IsSamePull(const WireHeader& a, const WireHeader& b);

// Pulls that the policy does not serve yet. Each waits at one segment, the first of its own that is
// not ready for it, and is looked at again when that one has moved on. Allocates only when more
// wait than ever before. Not thread-safe: owned by one lane.
class WaitingPulls {
 public:
  WaitingPulls(uint32_t segments, uint32_t blocks) : at_segment_(segments), in_block_(blocks) {}

  size_t in_block(uint32_t block) const { return in_block_[block]; }
  // Whether the same pull waits at this segment.
  bool Contains(const WireHeader& header, uint32_t segment) const;
  void Add(WaitingPull pull, uint32_t segment);
  // Lets go of the kExact pull of the same sender that begins with the same segment. `first`: its
  // id; `end`: the one after the block's last.
  void ForgetExact(const WireHeader& header, uint32_t first, uint32_t end);
  // Hands each pull that waits at the segment, and of which `which(header)` is true, to `look`,
  // which may Add it again. Not reentrant.
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
    // The emptied list has room: it goes where there is none, so that no list is grown twice.
    if (at_segment_[segment].empty()) std::swap(taken_, at_segment_[segment]);
  }
  template <typename Look>
  void TakeEach(uint32_t segment, Look look) {
    TakeEach(segment, look, [](const WireHeader&) { return true; });
  }
  void Clear();
  // Shows each, and the segment that it waits at.
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

#endif  // TUG_SERVER_WAITING_PULLS_H_
