// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_VIEW_CHANGE_H_
#define TUG_COORDINATOR_MEMBERSHIP_VIEW_CHANGE_H_

// Assignment of virtual workers to workers, and its change when workers are lost or join. A change
// has two phases:
//
//   1. Fence. Lanes get a new view number. From then on a lane refuses messages of all earlier
//      views, and reports, by virtual worker, the first clock that some segment of it has not
//      committed.
//   2. Assignment. Once all servers have reported, a virtual worker resumes at the lowest of its
//      clocks: its previous worker can no longer push to it. What was pushed of that step is kept,
//      and recognised when it is pushed again.
//
// fault.on_worker_loss determines who gets the virtual workers of a lost worker. REASSIGN: the
// other workers, those with the fewest first, ties by lower id. WAIT, SHRINK: none (they are
// orphans), until a worker joins (WAIT: or as many workers as wanted are there). A worker that
// joins gets orphans up to its share, else virtual workers of the others until all are equal.
//
// The virtual workers of a worker that leaves in order go to the others, whatever
// fault.on_worker_loss is.
//
// Servers may change too: those of the next placement of segments are fenced, adopt it, and report
// clocks (coordinator/placement/segment_holders.h). A server that loses segments needs no fence:
// its updates take effect only once the next owner has them.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "proto/job.pb.h"

namespace tug {

// Pure: no clock, no I/O. Not thread-safe.
class ViewChange {
 public:
  static constexpr uint32_t kNobody = 0;  // no node has this id

  struct Options {
    uint32_t virtual_workers = 1;
    uint32_t workers = 1;  // wanted by the job; see SetWanted
    FaultConfig::WorkerLoss on_worker_loss = FaultConfig::REASSIGN;
  };
  explicit ViewChange(const Options& options);

  // Starts the first view of a timeline: assigns all virtual workers again, in contiguous ranges.
  // REQUIRES: at least one worker, at most one per virtual worker.
  void BeginTimeline(std::span<const uint32_t> workers, std::span<const uint32_t> servers);

  // Sets the workers, ascending. Begins a change if they differ from before, or if `reassign_all`
  // is new and orphans could be assigned; a change in progress is discarded then. REQUIRES:
  // BeginTimeline was called.
  void SetWorkers(std::span<const uint32_t> workers, bool reassign_all);
  // Sets the number of workers that the job wants. Begins a change if it differs and there are
  // orphans. REQUIRES: at least one.
  void SetWanted(uint32_t workers);
  // The worker leaves in order. Call before SetWorkers without it.
  void SetLeaving(uint32_t worker) { leaving_.insert(worker); }
  // Begins a change to another placement of segments on these servers, ascending. REQUIRES: at
  // least one.
  void SetServers(std::span<const uint32_t> servers);
  // Adds a server's report in phase 1 of view `number`: clocks by virtual worker. Unvalidated
  // input.
  void AddClocks(uint32_t server, uint32_t number, std::span<const uint64_t> clocks);
  // True once when phase 2 is reached: owners and clocks are those of view number().
  bool TakeSettled();

  // Number of the newest view, or of the change in progress.
  uint32_t number() const { return number_; }
  // In phase 1: servers must report clocks.
  bool fencing() const { return fencing_; }
  // By virtual worker, as of the newest settled change.
  const std::vector<uint32_t>& owners() const { return owners_; }
  const std::vector<uint64_t>& start_clocks() const { return start_clocks_; }

  // Returns virtual workers of workers that were removed since the last call: steps before
  // start_clocks() that they have not reported will never be. Those still without an owner are
  // returned again by later calls, until a view assigns them. Call after TakeSettled.
  std::set<uint32_t> TakeLost();

 private:
  void Begin();
  void Settle();
  bool Stays(uint32_t worker) const;
  uint32_t CountOf(uint32_t worker) const;
  // Worker with the fewest, or the most, virtual workers; the first of several.
  uint32_t WithFewest(std::span<const uint32_t> workers) const;
  uint32_t WithMost() const;
  void TakeFromLeavers();
  void GiveOrphans();
  void Balance();

  Options options_;
  bool reassign_all_ = false;
  uint32_t number_ = 0;
  bool fencing_ = false;
  bool settled_ = false;  // not yet returned by TakeSettled
  std::vector<uint32_t> servers_;
  std::vector<uint32_t> workers_;
  std::vector<uint32_t> owners_;
  std::vector<uint64_t> start_clocks_;
  std::map<uint32_t, std::vector<uint64_t>> clocks_;  // by server, in this change
  std::map<uint32_t, std::set<uint32_t>> carried_;    // by worker: all it has had in this timeline
  std::set<uint32_t> lost_;
  std::set<uint32_t> leaving_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_VIEW_CHANGE_H_
