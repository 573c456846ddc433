#ifndef TUG_SERVER_BSP_POLICY_H_
#define TUG_SERVER_BSP_POLICY_H_

#include <cstdint>

namespace tug {

// Bulk synchronous parallel. Paper: Valiant 1990, "A bridging model for parallel computation".
// Rule: an update of a segment closes when the pushes of all virtual workers for that clock are in;
// a pull is served at exactly the version it names. Pure, thread-safe.
class BspPolicy {
 public:
  // Whether a push of `clock` may be taken by a segment at `version`: the open clock is the
  // version's own number.
  bool IsOpen(uint64_t clock, uint64_t version) const { return clock == version; }
  // Whether a push of `clock` is already part of a segment at `version`.
  bool IsCommitted(uint64_t clock, uint64_t version) const { return clock < version; }
  // Whether the open clock closes with `arrived` of `virtual_workers` contributions.
  bool Closes(uint32_t arrived, uint32_t virtual_workers) const {
    return arrived == virtual_workers;
  }
};

}  // namespace tug

#endif  // TUG_SERVER_BSP_POLICY_H_
