// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_PAIR_LEARNER_H_
#define TUG_DATA_TEXT_PAIR_LEARNER_H_

// Learns byte pairs: repeatedly replaces the most frequent adjacent pair by a new symbol. Paper:
// Sennrich et al. 2016, algorithm 1. Counts are updated incrementally, so a merge costs only the
// words that contain its pair. Deterministic. Not thread-safe.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tug {

class PairLearner {
 public:
  struct Word {
    std::vector<int32_t> symbols;
    int64_t count;  // occurrences in the text
  };
  struct Pair {
    int32_t left;
    int32_t right;
  };

  // `lengths`: length of each symbol, in characters; symbols of words are below lengths.size().
  // Pairs of more than `max_length` characters are not merged.
  PairLearner(std::vector<Word> words, std::vector<int32_t> lengths, int32_t max_length);

  // Merges the most frequent pair everywhere into a new symbol; of equally frequent pairs, the one
  // with the lowest symbols. Returns false if no pair occurs more than once.
  bool Next(Pair& merged);

 private:
  struct Place {
    int64_t count = 0;
    std::vector<int32_t> words;  // words that contain or contained the pair; may repeat
  };
  struct Candidate {
    int64_t count;
    uint64_t key;
    bool operator<(const Candidate& other) const {  // the lowest is the worst
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  static uint64_t Key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  void Change(int32_t left, int32_t right, int64_t by, int32_t word);
  void MergeIn(int32_t word, Pair pair, int32_t symbol);

  std::vector<Word> words_;
  std::vector<int32_t> lengths_;
  int32_t max_length_;
  absl::flat_hash_map<uint64_t, Place> places_;
  std::vector<Candidate> heap_;  // counts may be stale; places_ has the current ones
};

}  // namespace tug

#endif  // TUG_DATA_TEXT_PAIR_LEARNER_H_
