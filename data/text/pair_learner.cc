// SPDX-License-Identifier: Apache-2.0
#include "data/text/pair_learner.h"

#include <algorithm>

namespace tug {

PairLearner::PairLearner(std::vector<Word> words, std::vector<int32_t> lengths, int32_t max_length)
    : words_(std::move(words)), lengths_(std::move(lengths)), max_length_(max_length) {
  for (size_t w = 0; w < words_.size(); ++w) {
    const std::vector<int32_t>& symbols = words_[w].symbols;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (lengths_[static_cast<size_t>(symbols[i])] +
              lengths_[static_cast<size_t>(symbols[i + 1])] >
          max_length_) {
        continue;
      }
      Place& place = places_[Key(symbols[i], symbols[i + 1])];
      place.count += words_[w].count;
      if (place.words.empty() || place.words.back() != static_cast<int32_t>(w)) {
        place.words.push_back(static_cast<int32_t>(w));
      }
    }
  }
  for (const auto& [key, place] : places_) heap_.push_back({place.count, key});
  std::make_heap(heap_.begin(), heap_.end());
}

bool PairLearner::Next(Pair& merged) {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    const auto found = places_.find(best.key);
    if (found == places_.end() || found->second.count <= 1) continue;
    if (found->second.count != best.count) {  // stale: the count fell; Change pushes every rise
      if (found->second.count < best.count) {
        heap_.push_back({found->second.count, best.key});
        std::push_heap(heap_.begin(), heap_.end());
      }
      continue;
    }
    merged = {static_cast<int32_t>(best.key >> 32), static_cast<int32_t>(best.key & 0xFFFFFFFF)};
    const auto symbol = static_cast<int32_t>(lengths_.size());
    lengths_.push_back(lengths_[static_cast<size_t>(merged.left)] +
                       lengths_[static_cast<size_t>(merged.right)]);
    std::vector<int32_t> words = std::move(found->second.words);
    places_.erase(found);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (const int32_t word : words) MergeIn(word, merged, symbol);
    return true;
  }
  return false;
}

void PairLearner::Change(int32_t left, int32_t right, int64_t by, int32_t word) {
  if (lengths_[static_cast<size_t>(left)] + lengths_[static_cast<size_t>(right)] > max_length_) {
    return;
  }
  const uint64_t key = Key(left, right);
  Place& place = places_[key];
  place.count += by;
  if (by < 0) return;
  if (place.words.empty() || place.words.back() != word) place.words.push_back(word);
  heap_.push_back({place.count, key});
  std::push_heap(heap_.begin(), heap_.end());
}

void PairLearner::MergeIn(int32_t word, Pair pair, int32_t symbol) {
  std::vector<int32_t>& symbols = words_[static_cast<size_t>(word)].symbols;
  const int64_t count = words_[static_cast<size_t>(word)].count;
  size_t out = 0;  // symbols[0 .. out) are already merged
  for (size_t i = 0; i < symbols.size(); ++i) {
    const bool match =
        i + 1 < symbols.size() && symbols[i] == pair.left && symbols[i + 1] == pair.right;
    if (!match) {
      symbols[out++] = symbols[i];
      continue;
    }
    // Before: [out - 1] left right [i + 2]; after: [out - 1] symbol [i + 2].
    if (out > 0) {
      Change(symbols[out - 1], pair.left, -count, word);
      Change(symbols[out - 1], symbol, count, word);
    }
    if (i + 2 < symbols.size()) {
      Change(pair.right, symbols[i + 2], -count, word);
      Change(symbol, symbols[i + 2], count, word);
    }
    symbols[out++] = symbol;
    ++i;
  }
  symbols.resize(out);
}

}  // namespace tug
