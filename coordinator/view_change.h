#ifndef TUG_COORDINATOR_VIEW_CHANGE_H_
#define TUG_COORDINATOR_VIEW_CHANGE_H_

// Who carries which virtual worker, and how that changes while a job runs: workers are lost, others
// join. A change has two phases:
//
//   1. Fence. Lanes get a new view number. From then on a lane refuses messages of all views
//      before, and says, by virtual worker, the first clock that some segment of it lacks.
//   2. Places. When all lanes have said so, the lowest is where whoever gets a virtual worker goes
//      on: nobody who carried it before can add to it any more. What was pushed of that step is
//      there, and is recognised when it is pushed again.
//
// Who gets the virtual workers of a lost worker: fault.on_worker_loss. REASSIGN: the others, those
// with the fewest first, ties by lower id. WAIT, SHRINK: nobody, until a worker joins (WAIT: or
// as many as the job wants are there). One that joins gets what nobody has, up to its share, else
// as many of the others' as make all equal.
//
// A worker that leaves in order has its virtual workers taken over by the others, whatever is
// said of lost ones.
//
// Servers may change too: those of the next placement of segments are fenced, take it up, and are
// asked for clocks (coordinator/segment_holders.h). Who loses segments by it needs no fence: an
// update of theirs is nothing before the next owner has it.

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
    uint32_t workers = 1;  // that the job wants; SetWanted
    FaultConfig::WorkerLoss on_worker_loss = FaultConfig::REASSIGN;
  };
  explicit ViewChange(const Options& options);

  // The next view, of a new timeline: all virtual workers are dealt afresh, in contiguous runs.
  // REQUIRES: at least one worker, at most one a virtual worker.
  void BeginTimeline(std::span<const uint32_t> workers, std::span<const uint32_t> servers);

  // Workers are these now, ascending. Begins a change if they are others than before, or if
  // `reassign_all` and somebody could take what nobody has. Each change under way is void then.
  // REQUIRES: BeginTimeline was called.
  void SetWorkers(std::span<const uint32_t> workers, bool reassign_all);
  // From now on the job wants so many: begins a change if that may give somebody what nobody has.
  // REQUIRES: at least one.
  void SetWanted(uint32_t workers);
  // The worker leaves in order: to be said before SetWorkers without it.
  void SetLeaving(uint32_t worker) { leaving_.insert(worker); }
  // There is another placement of segments, on these servers, ascending: begins a change.
  // REQUIRES: at least one.
  void SetServers(std::span<const uint32_t> servers);
  // What a server says in phase 1 of view `number`: clocks by virtual worker. From outside.
  void AddClocks(uint32_t server, uint32_t number, std::span<const uint64_t> clocks);
  // True once when phase 2 is reached: owners and clocks are those of view number().
  bool TakeSettled();

  // Of the newest view, or the change under way.
  uint32_t number() const { return number_; }
  // In phase 1: servers are asked for clocks.
  bool fencing() const { return fencing_; }
  // By virtual worker, as of the newest change that was settled.
  const std::vector<uint32_t>& owners() const { return owners_; }
  const std::vector<uint64_t>& start_clocks() const { return start_clocks_; }

  // Virtual workers that a worker carried that is no member any more, since this was asked last:
  // what it has not reported before start_clocks(), nobody will. Those that nobody carries are
  // named again by later views, up to the one in which somebody does. After TakeSettled.
  std::set<uint32_t> TakeLost();

 private:
  void Begin();
  void Settle();
  bool Stays(uint32_t worker) const;
  uint32_t CountOf(uint32_t worker) const;
  // The one with the fewest, or the most; of several the first.
  uint32_t WithFewest(std::span<const uint32_t> workers) const;
  uint32_t WithMost() const;
  void TakeFromLeavers();
  void GiveOrphans();
  void Balance();

  Options options_;
  bool reassign_all_ = false;
  uint32_t number_ = 0;
  bool fencing_ = false;
  bool settled_ = false;  // not taken yet
  std::vector<uint32_t> servers_;
  std::vector<uint32_t> workers_;
  std::vector<uint32_t> owners_;
  std::vector<uint64_t> start_clocks_;
  std::map<uint32_t, std::vector<uint64_t>> clocks_;  // by server, of this change
  std::map<uint32_t, std::set<uint32_t>> carried_;    // by worker, in this timeline
  std::set<uint32_t> lost_;
  std::set<uint32_t> leaving_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_VIEW_CHANGE_H_
