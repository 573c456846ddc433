#ifndef TUG_SERVER_NORM_LEDGER_H_
#define TUG_SERVER_NORM_LEDGER_H_

// How lanes agree on one clipping scale without a third party. A scope is what one norm is taken
// over: a block (`clip: per_block`) or everything (`clip: global`).
//   1. A lane whose segments of a scope are all summed sends their FP64 sums of squares to every
//      other lane that owns a segment of the scope.
//   2. A lane that has the sums of all segments of the scope folds them in a fixed order, so every
//      lane gets the same bits: a binary tree over the segments of a parameter group (it continues
//      the tree inside each segment, so the segment size does not matter), then group by group,
//      block by block.
//   3. All lanes draw the same conclusion: a scale, or, where a gradient is not finite, a skipped
//      update that names the first such block and virtual worker.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exchange/segment_table.h"
#include "server/norm_entry.h"

namespace tug {

struct NormVerdict {
  double sum_of_squares = 0;
  bool finite = true;
  // If not finite: where. The virtual worker is kAllFinite if only the sum overflowed.
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

  // An own segment, as the lane takes it up.
  struct OwnSegment {
    uint32_t id = 0;
    uint64_t version = 0;
    NormEntry norm;  // of the update that made it
  };
  // Begins in the middle of a timeline. A scope's clock is the lowest version of the lane's own
  // segments; of one that is further it has the entry already. `own`: all of them, in order. False
  // if two of a scope lie further apart: no lane can have left them so. Before the first AddOwn.
  bool TakeUp(std::span<const OwnSegment> own, uint64_t start_clock);

  // The wire's name of the scope that a block belongs to.
  uint32_t ScopeOfBlock(uint32_t block) const { return scope_ == Scope::kAll ? kAllBlocks : block; }
  bool IsScope(uint32_t scope) const;
  uint64_t clock(uint32_t scope) const { return At(scope).clock; }

  // An own segment is summed. True when it was the last own one of its scope: time to send
  // OwnEntries.
  bool AddOwn(uint32_t segment, NormEntry entry);
  // Another lane's entries of a scope at a clock. False if the message makes no sense (wrong
  // length, no such lane in the scope, clock not the open one); a repeat is fine.
  bool AddRemote(uint32_t scope, uint32_t from_lane, uint64_t clock,
                 std::span<const std::byte> payload);

  // Own entries at the open clock, if complete, or at the one before. None if there are no own
  // segments.
  std::optional<std::vector<NormEntry>> OwnEntries(uint32_t scope, uint64_t clock) const;
  // Own part complete, others awaited.
  bool Waiting(uint32_t scope) const;
  // Other lanes that own a segment of the scope whose entry at the open clock has not come.
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

#endif  // TUG_SERVER_NORM_LEDGER_H_
