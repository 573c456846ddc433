// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SUMS_NORM_LEDGER_H_
#define TUG_SERVER_SUMS_NORM_LEDGER_H_

// Lets lanes agree on one clipping scale without a third party. One norm is taken over each scope:
// a block (`clip: PER_BLOCK`) or all blocks (`clip: GLOBAL`).
//   1. A lane with complete sums for all its segments of a scope sends their FP64 sums of squares
//      to every other lane that owns a segment of the scope.
//   2. A lane that has the sums of squares of all segments of the scope folds them in a fixed
//      order, so every lane gets the same bits: a binary tree over the segments of a parameter
//      group (it continues the tree inside each segment, so the segment size does not matter), then
//      group by group, block by block.
//   3. All lanes reach the same result: a scale or, if a gradient is not finite, a skipped update
//      that names the first such block and virtual worker.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "blocks/segment_table.h"
#include "server/sums/norm_entry.h"

namespace tug {

struct NormVerdict {
  double sum_of_squares = 0;
  bool finite = true;
  // Location, if not finite. The virtual worker is kAllFinite if only the sum overflowed.
  uint32_t bad_block = 0;
  uint32_t bad_virtual_worker = NormEntry::kAllFinite;
};

// Not thread-safe: owned by one lane's shard.
class NormLedger {
 public:
  enum class Scope { kBlock, kAll };
  // Wire value of `block` for the scope of all blocks.
  static constexpr uint32_t kAllBlocks = 0xffffffffu;

  // REQUIRES: `table` outlives the ledger; lane_of_segment has an entry per segment.
  NormLedger(const SegmentTable& table, std::span<const uint32_t> lane_of_segment, uint32_t lane,
             Scope scope, uint64_t start_clock);

  // An own segment that the lane inherits.
  struct OwnSegment {
    uint32_t id = 0;
    uint64_t version = 0;
    NormEntry norm;  // norm of the update to `version`
  };
  // Starts in the middle of a timeline. A scope's clock is the lowest version of the lane's own
  // segments; a segment that is one version ahead already has its entry. `own`: all of them, in
  // order. False if two segments of a scope are further apart: no lane can have left them so. Call
  // before the first AddOwn.
  bool RecoverState(std::span<const OwnSegment> own, uint64_t start_clock);

  // Wire value of the scope that a block belongs to.
  uint32_t ScopeOfBlock(uint32_t block) const { return scope_ == Scope::kAll ? kAllBlocks : block; }
  bool IsScope(uint32_t scope) const;
  uint64_t clock(uint32_t scope) const { return At(scope).clock; }

  // Adds the entry of an own segment. True if it was the last own one of its scope: send
  // OwnEntries.
  bool AddOwn(uint32_t segment, NormEntry entry);
  // Adds another lane's entries of a scope at a clock. False if they are invalid (wrong length, a
  // lane outside the scope, a future clock); repeats are valid.
  bool AddRemote(uint32_t scope, uint32_t from_lane, uint64_t clock,
                 std::span<const std::byte> payload);

  // Own entries at the open clock, if complete, or at the previous clock. None if there are no own
  // segments.
  std::optional<std::vector<NormEntry>> OwnEntries(uint32_t scope, uint64_t clock) const;
  // Whether the own entries are complete and others are missing.
  bool Waiting(uint32_t scope) const;
  // Other lanes of the scope whose entries at the open clock are missing.
  std::vector<uint32_t> MissingLanes(uint32_t scope) const;
  // Other lanes that own a segment of the scope.
  std::vector<uint32_t> OtherLanes(uint32_t scope) const;
  // Own segments of the scope, in order.
  std::vector<uint32_t> OwnSegments(uint32_t scope) const;

  bool complete(uint32_t scope) const { return At(scope).missing == 0; }
  // REQUIRES: complete(scope).
  NormVerdict Fold(uint32_t scope) const;
  // Opens the next clock of the scope.
  void Advance(uint32_t scope);

 private:
  struct ScopeState {
    uint32_t first_segment = 0;  // ids [first_segment, end_segment)
    uint32_t end_segment = 0;
    uint64_t clock = 0;
    std::vector<NormEntry> entries;
    std::vector<bool> present;
    uint32_t missing = 0;
    uint32_t own_missing = 0;
    uint32_t own = 0;
    std::vector<NormEntry> previous_own;
    bool has_previous = false;
  };

  const ScopeState& At(uint32_t scope) const;
  ScopeState& At(uint32_t scope);
  void Put(ScopeState& state, uint32_t segment, NormEntry entry);
  std::vector<uint32_t> SegmentsOf(const ScopeState& state, uint32_t lane) const;
  std::vector<NormEntry> OwnOf(const ScopeState& state) const;

  const SegmentTable& table_;
  const std::vector<uint32_t> lane_of_segment_;
  const uint32_t lane_;
  const Scope scope_;
  std::vector<ScopeState> states_;
};

}  // namespace tug

#endif  // TUG_SERVER_SUMS_NORM_LEDGER_H_
