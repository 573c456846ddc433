// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_FOLD_H_
#define TUG_COLLECTIVE_SCHEDULES_FOLD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "collective/schedules/schedule.h"

namespace tug {

// Adapts algorithms that need a power of two ranks to any number, as MPICH does (Thakur,
// Rabenseifner and Gropp 2005). One pair of the first ranks is formed per excess rank; the even
// rank of a pair sends its whole buffer to the odd one, which sums it, takes part for both, and
// finally sends the result back.
//
// 2 (alpha + S beta) + S gamma. Rabenseifner 2004 has each rank of a pair sum a half and joins the
// halves: S/2 gamma less for one message more. Fold prefers the fewer messages.
class Fold {
 public:
  // REQUIRES: world >= 1.
  explicit Fold(uint32_t world);

  // Number of ranks that take part: the largest power of two that is at most the world.
  uint32_t members() const { return members_; }
  // Member number of a rank; none if it does not take part.
  std::optional<uint32_t> MemberOf(uint32_t rank) const;
  // REQUIRES: member < members().
  uint32_t RankOf(uint32_t member) const;

  // Appends one step each; none if the world is a power of two. AppendIn: all `parts` go from the
  // even rank to the odd one, which sums them; AppendOut: back.
  void AppendIn(uint32_t rank, uint32_t parts, std::vector<Step>& steps) const;
  void AppendOut(uint32_t rank, uint32_t parts, std::vector<Step>& steps) const;

 private:
  uint32_t members_;
  uint32_t pairs_;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_FOLD_H_
