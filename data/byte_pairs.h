#ifndef TUG_DATA_BYTE_PAIRS_H_
#define TUG_DATA_BYTE_PAIRS_H_

// Byte-pair encoding's one operation: merge the neighbours whose pair has the least rank, the
// leftmost of these first, until no neighbours merge. Paper: Sennrich et al. 2016, algorithm 1.

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tug {

// Not thread-safe while pairs are added; then immutable.
class PairRanks {
 public:
  struct Merge {
    uint32_t rank;
    int32_t merged;
  };

  // Returns false and keeps the first one if the pair is there already.
  bool Add(int32_t left, int32_t right, Merge merge) {
    return merges_.emplace(Key(left, right), merge).second;
  }
  // Null if the two do not merge.
  const Merge* Find(int32_t left, int32_t right) const {
    const auto found = merges_.find(Key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

 private:
  static uint64_t Key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  absl::flat_hash_map<uint64_t, Merge> merges_;
};

// Keeps its memory between words. Not thread-safe; borrows `ranks`.
class PairMerger {
 public:
  explicit PairMerger(const PairRanks& ranks) : ranks_(&ranks) {}

  // Replaces `symbols` by what they merge to. O(n log n).
  void Merge(std::vector<int32_t>& symbols);

 private:
  struct Link {
    int32_t symbol;  // -1 = merged into the one before
    int32_t previous;
    int32_t next;  // -1 = none
  };
  // Two neighbours that merge. Stale once either of them has changed.
  struct Candidate {
    uint32_t rank;
    int32_t left;  // a link
    int32_t left_symbol;
    int32_t right_symbol;
    int32_t merged;
    // So that the standard heap gives the least rank, the leftmost first.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  void Offer(int32_t left);

  const PairRanks* ranks_;
  std::vector<Link> links_;
  std::vector<Candidate> heap_;
};

}  // namespace tug

#endif  // TUG_DATA_BYTE_PAIRS_H_
