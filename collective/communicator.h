#ifndef TUG_COLLECTIVE_COMMUNICATOR_H_
#define TUG_COLLECTIVE_COMMUNICATOR_H_

// Collectives between processes, one after another, by calls that block:
//
//   ASSIGN_OR_RETURN(auto communicator, Communicator::Create(options, *transport));
//   auto buffer = transport->NewBuffer(bytes);  // read in place by peers on this host
//   RETURN_IF_ERROR(communicator->Run(RingAllReduce(rank, world), {buffer, ...}, type));
//
// What is run, and what happens when a rank is lost, is RankGroup's (rank_group.h); this class
// binds it to a transport and a clock. A rank connects to all ranks below it; those above connect
// to it. Over TCP only who has something to send to a rank above learns by the connection that it
// is gone; so of rank 0 nobody does. That it is gone is then noticed as silence (`timeout`), or, if
// it had not come to the collective, after `patience`. In shared memory all notice at once.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/time_source.h"
#include "collective/rank_group.h"
#include "collective/schedule.h"
#include "transport/transport.h"

namespace tug {

struct CommunicatorOptions {
  RankGroupOptions group;
  std::vector<std::string> endpoints;  // by rank: where each listens, for Transport::Connect
};

// Used from one thread at a time, but for Abort. After an error it is of no use, and says so.
class Communicator {
 public:
  // Waits until all ranks are there, and has them agree on how to run short collectives, which
  // takes two collectives. REQUIRES: `transport` outlives it, listens if there are ranks above, and
  // is used by nobody else meanwhile (Wake and NewBuffer apart); all ranks below listen by now; and
  // no earlier group over the transport had its job and number (`group`). Errors: as
  // Transport::Connect; DEADLINE_EXCEEDED (which rank has not come within `patience`); UNAVAILABLE
  // (which was lost meanwhile). They are told to the ranks that can be reached.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(CommunicatorOptions options,
                                                              Transport& transport);

  // Runs this rank's `schedule` on the buffer, together with the other ranks. When it returns OK,
  // nobody reads the buffer. Where all ranks share memory it may wait for ranks that have nothing
  // to send: until they have taken all but MessageBoard::kCells of this rank's short messages.
  // Errors: as RankGroup's; after one, peers may be reading the buffer still: it must not be
  // written while its `owner` has other users.
  absl::Status Run(const CollectiveSchedule& schedule, CollectiveBuffer buffer, ElementType type);

  // Ends the call in progress, and all later ones, on all ranks, with an error that names `rank`.
  // Thread-safe.
  void Abort(uint32_t rank, const std::string& why);

  uint32_t rank() const { return rank_; }
  uint32_t world() const { return group_.world(); }

 private:
  Communicator(CommunicatorOptions options, Transport& transport);

  // How a rank is reached.
  struct Link {
    bool met = false;              // has greeted
    bool shares_memory = false;    // as of the last tick
    std::deque<Outgoing> waiting;  // for room in the queue
    std::string lost;              // why, if the connection is
    bool drained = false;          // a Poll since then has delivered nothing

    // Lost, and what the rank had sent before has been taken.
    bool lost_for_good() const { return !lost.empty() && drained; }
  };
  struct Aborted {
    uint32_t rank;
    std::string why;
  };

  absl::Status Meet();
  void Greet(uint32_t rank);
  void TakeGreeting(uint32_t rank, Message greeting);
  absl::Status AgreeOnBoard();
  absl::StatusOr<bool> AllSay(bool yes);
  // Looks at the board until there is something to do, or for as long as one spins.
  bool WatchBoard();
  absl::Time Wait(bool may_sleep);  // for messages
  void Send(Outgoing message);
  // Whether it is gone from our hands: sent, or of no use.
  bool TrySend(uint32_t rank, const Outgoing& message);
  void Retry();
  // Gives the notices of a failure a moment to leave.
  void Leave();
  // Messages at hand, then, if `wait`, those that come within a tick. Returns when it began.
  absl::Time Poll(bool wait);
  void Tick(absl::Time now);
  void TakeAbort();
  void SetLost(uint32_t rank, std::string why);

  const uint32_t rank_;
  const absl::Duration patience_;
  const absl::Duration spin_;
  Transport& transport_;
  const RealTime time_;
  RankGroup group_;
  std::unique_ptr<MessageBoard> board_;  // none if not all ranks share memory
  std::vector<Link> links_;              // by rank
  size_t waiting_messages_ = 0;          // of all links
  bool unflushed_ = false;               // sent since the last Poll, and not through shared memory
  absl::Time next_tick_ = absl::InfinitePast();
  std::atomic<bool> any_aborted_ = false;  // so that who finds nothing needs no lock
  absl::Mutex mutex_;
  std::optional<Aborted> aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_COMMUNICATOR_H_
