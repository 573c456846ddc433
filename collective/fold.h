#ifndef TUG_COLLECTIVE_FOLD_H_
#define TUG_COLLECTIVE_FOLD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "collective/schedule.h"

namespace tug {

// How algorithms that need a power of two ranks do with any number, as MPICH does it (Thakur,
// Rabenseifner and Gropp 2005): of the first ranks, as many pairs as there are ranks too many, the
// even one gives all that it has to the odd one, which sums it and takes part for both; in the end
// it sends the result back.
//
// 2 (alpha + S beta) + S gamma. Rabenseifner 2004 has both of a pair sum a half and puts the halves
// together: a message more, S/2 gamma less (not done here).
class Fold {
 public:
  // REQUIRES: world >= 1.
  explicit Fold(uint32_t world);

  // Ranks that take part: the largest power of two that the world holds.
  uint32_t members() const { return members_; }
  // The number of a rank among them, if it takes part.
  std::optional<uint32_t> MemberOf(uint32_t rank) const;
  // REQUIRES: member < members().
  uint32_t RankOf(uint32_t member) const;

  // One step each, none in a world of a power of two: all `parts` go from the even to the odd, to
  // be summed, and back.
  void AppendIn(uint32_t rank, uint32_t parts, std::vector<Step>& steps) const;
  void AppendOut(uint32_t rank, uint32_t parts, std::vector<Step>& steps) const;

 private:
  uint32_t members_;
  uint32_t pairs_;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_FOLD_H_
