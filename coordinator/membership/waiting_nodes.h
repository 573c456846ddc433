// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_WAITING_NODES_H_
#define TUG_COORDINATOR_MEMBERSHIP_WAITING_NODES_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"

namespace tug {

// Nodes that found the job full and keep asking, since the node they replace may not have been
// declared lost yet. They are not members: no job state depends on them, and a recovered
// coordinator starts counting again, as for members.
//
// A node is identified by its incarnation (RegisterRequest). Not thread-safe.
class WaitingNodes {
 public:
  static constexpr size_t kMost = 1024;  // further nodes do not wait
  // A node that has not asked for this long is gone. Several times a node's retry interval
  // (control/join_job.h).
  static constexpr absl::Duration kAsksWithin = absl::Seconds(1);

  // `patience`: how long a node waits, from its first request.
  explicit WaitingNodes(absl::Duration patience) : patience_(patience) {}

  absl::Duration patience() const { return patience_; }
  // Records that a node asks while the job is full. False: it has waited long enough, or too many
  // wait.
  bool MayAskAgain(uint64_t node, absl::Time now);
  // The node has its answer; unknown nodes are ignored.
  void Remove(uint64_t node) { nodes_.erase(node); }
  // Whether a node asked within kAsksWithin.
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

#endif  // TUG_COORDINATOR_MEMBERSHIP_WAITING_NODES_H_
