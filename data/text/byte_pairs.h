// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_BYTE_PAIRS_H_
#define TUG_DATA_TEXT_BYTE_PAIRS_H_

// Byte-pair encoding: repeatedly merges the adjacent pair of lowest rank, leftmost first, until no
// pair merges. Paper: Sennrich et al. 2016, algorithm 1.

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tug {

// Not thread-safe while pairs are added; immutable afterwards.
class PairRanks {
 public:
  struct Merge {
    uint32_t rank;
    int32_t merged;
  };

  // Returns false and keeps the old merge if the pair was added before.
  bool Add(int32_t left, int32_t right, Merge merge) {
    return merges_.emplace(Key(left, right), merge).second;
  }
  // Null if the pair does not merge.
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

// Reuses its memory between words. Not thread-safe; borrows `ranks`.
class PairMerger {
 public:
  explicit PairMerger(const PairRanks& ranks) : ranks_(&ranks) {}

  // Replaces `symbols` by their merges. O(n log n).
  void Merge(std::vector<int32_t>& symbols);

 private:
  struct Link {
    int32_t symbol;  // -1 = merged into the previous one
    int32_t previous;
    int32_t next;  // -1 = none
  };
  // An adjacent pair that merges. Stale once either symbol has changed.
  struct Candidate {
    uint32_t rank;
    int32_t left;  // index into links_
    int32_t left_symbol;
    int32_t right_symbol;
    int32_t merged;
    // Makes the standard heap return the lowest rank, leftmost first.
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

#endif  // TUG_DATA_TEXT_BYTE_PAIRS_H_
