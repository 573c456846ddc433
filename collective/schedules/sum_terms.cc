// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/sum_terms.h"

#include <algorithm>

#include "base/check.h"

namespace tug {

uint32_t SumTerms::Leaf(uint32_t rank, uint32_t part) {
  TUG_CHECK(rank < 64);
  return Add(leaves_, rank, part, {uint64_t{1} << rank, part});
}

uint32_t SumTerms::Sum(uint32_t a, uint32_t b) {
  TUG_CHECK(a != kNothing && b != kNothing);
  return Add(sums_, std::min(a, b), std::max(a, b), {ranks(a) | ranks(b), part(a)});
}

uint32_t SumTerms::Add(std::map<std::pair<uint32_t, uint32_t>, uint32_t>& numbers, uint32_t a,
                       uint32_t b, const Term& term) {
  const auto [it, added] = numbers.try_emplace({a, b}, static_cast<uint32_t>(terms_.size()));
  if (added) terms_.push_back(term);
  return it->second;
}

}  // namespace tug
