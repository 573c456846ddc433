// SPDX-License-Identifier: Apache-2.0
#include "data/text/byte_pairs.h"

#include <algorithm>

namespace tug {

void PairMerger::Offer(int32_t left) {
  const Link& link = links_[static_cast<size_t>(left)];
  if (link.next < 0) return;
  const int32_t right_symbol = links_[static_cast<size_t>(link.next)].symbol;
  const PairRanks::Merge* merge = ranks_->Find(link.symbol, right_symbol);
  if (merge == nullptr) return;
  heap_.push_back({merge->rank, left, link.symbol, right_symbol, merge->merged});
  std::push_heap(heap_.begin(), heap_.end());
}

void PairMerger::Merge(std::vector<int32_t>& symbols) {
  const auto count = static_cast<int32_t>(symbols.size());
  links_.clear();
  heap_.clear();
  for (int32_t i = 0; i < count; ++i) {
    links_.push_back({symbols[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  }
  for (int32_t i = 0; i + 1 < count; ++i) Offer(i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    Link& left = links_[static_cast<size_t>(best.left)];
    if (left.symbol != best.left_symbol || left.next < 0) continue;
    Link& right = links_[static_cast<size_t>(left.next)];
    if (right.symbol != best.right_symbol) continue;
    left.symbol = best.merged;
    right.symbol = -1;
    left.next = right.next;
    if (left.next >= 0) links_[static_cast<size_t>(left.next)].previous = best.left;
    Offer(best.left);
    if (left.previous >= 0) Offer(left.previous);
  }
  symbols.clear();
  for (int32_t i = 0; i >= 0 && i < count; i = links_[static_cast<size_t>(i)].next) {
    symbols.push_back(links_[static_cast<size_t>(i)].symbol);
  }
}

}  // namespace tug
