// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_SUM_TERMS_H_
#define TUG_COLLECTIVE_SCHEDULES_SUM_TERMS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tug {

// Sums of contributions as trees. Two sums get the same number if and only if they are the same
// tree, up to a + b = b + a; then they have the same bits in floating point.
class SumTerms {
 public:
  static constexpr uint32_t kNothing = 0;

  SumTerms() : terms_(1) {}

  // Initial contribution of a rank to a part. REQUIRES: rank < 64.
  uint32_t Leaf(uint32_t rank, uint32_t part);
  // REQUIRES: neither is kNothing.
  uint32_t Sum(uint32_t a, uint32_t b);
  // Contributions in a term: bit r for rank r; and the part they belong to.
  uint64_t ranks(uint32_t term) const { return terms_[term].ranks; }
  uint32_t part(uint32_t term) const { return terms_[term].part; }

 private:
  struct Term {
    uint64_t ranks = 0;
    uint32_t part = 0;
  };
  uint32_t Add(std::map<std::pair<uint32_t, uint32_t>, uint32_t>& numbers, uint32_t a, uint32_t b,
               const Term& term);

  std::vector<Term> terms_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> leaves_, sums_;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_SUM_TERMS_H_
