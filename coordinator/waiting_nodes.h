#ifndef TUG_COORDINATOR_WAITING_NODES_H_
#define TUG_COORDINATOR_WAITING_NODES_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"

namespace tug {

// Nodes that found the job full and ask again and again, since the one whose place they are to take
// may be gone without anybody having missed it yet. They are no members: nothing of the job depends
// on them, and a coordinator that takes the job up begins to count anew, as for members.
//
// A node is named by its incarnation (RegisterRequest). Not thread-safe.
class WaitingNodes {
 public:
  static constexpr size_t kMost = 1024;  // further ones do not wait
  // One that has not asked for so long is gone. Several times what a node pauses
  // (proto/join_job.h).
  static constexpr absl::Duration kAsksWithin = absl::Seconds(1);

  // A node waits for `patience` from the first time that it asked.
  explicit WaitingNodes(absl::Duration patience) : patience_(patience) {}

  absl::Duration patience() const { return patience_; }
  // A node asks, and there is no room. False: it has waited long enough, or there are too many.
  bool MayAskAgain(uint64_t node, absl::Time now);
  // It has been told what it waited for; not known: nothing.
  void Remove(uint64_t node) { nodes_.erase(node); }
  // Whether somebody waits.
  bool SomebodyAsks(absl::Time now) const;

 private:
  struct Asked {
    absl::Time first;
    absl::Time last;
  };

  const absl::Duration patience_;
  std::map<uint64_t, Asked> nodes_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_WAITING_NODES_H_
