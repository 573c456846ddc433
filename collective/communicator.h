// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_COMMUNICATOR_H_
#define TUG_COLLECTIVE_COMMUNICATOR_H_

// Blocking collectives between processes, one at a time:
//
//   ASSIGN_OR_RETURN(auto communicator, Communicator::Create(options, *transport));
//   auto buffer = transport->NewBuffer(bytes);  // read in place by peers on this host
//   RETURN_IF_ERROR(communicator->Run(RingAllReduce(rank, world), {buffer, ...}, type));
//
// RankGroup (rank_group.h) runs the collectives and handles lost ranks; this class binds it to a
// transport and a clock. A rank connects to all ranks below it; those above connect to it. Over TCP
// a broken connection is noticed only by a rank that sends to a higher one, so never for rank 0.
// Otherwise a lost rank is found by its silence (`timeout`) or, if it had not joined the
// collective, after `patience`. In shared memory all ranks notice at once.

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
#include "collective/schedules/schedule.h"
#include "transport/transport.h"

namespace tug {

struct CommunicatorOptions {
  RankGroupOptions group;
  std::vector<std::string> endpoints;  // by rank: address for Transport::Connect
};

// Used from one thread at a time, except Abort. After an error every call returns that error.
class Communicator {
 public:
  // Waits for all ranks, then agrees with them on how to run short collectives, which takes two
  // collectives. REQUIRES: `transport` outlives it, listens if there are higher ranks, and has no
  // other user meanwhile (except Wake and NewBuffer); all lower ranks already listen; no earlier
  // group over the transport had the same job and number (`group`). Errors: as Transport::Connect;
  // DEADLINE_EXCEEDED (names a rank that did not come within `patience`); UNAVAILABLE (names a rank
  // lost meanwhile). Reachable ranks get the error too.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(CommunicatorOptions options,
                                                              Transport& transport);

  // Runs this rank's `schedule` on the buffer, together with the other ranks. On OK, no rank reads
  // the buffer any longer. If all ranks share memory, Run may also wait for ranks that have nothing
  // to send, until they have taken all but MessageBoard::kCells of this rank's short messages.
  // Errors: as RankGroup's. After an error peers may still read the buffer: do not write it while
  // its `owner` has other users.
  absl::Status Run(const CollectiveSchedule& schedule, CollectiveBuffer buffer, ElementType type);

  // Fails the call in progress and all later ones, on all ranks, with an error that names `rank`.
  // Thread-safe.
  void Abort(uint32_t rank, const std::string& why);

  uint32_t rank() const { return rank_; }
  uint32_t world() const { return group_.world(); }

 private:
  Communicator(CommunicatorOptions options, Transport& transport);

  // Connection state of a rank.
  struct Link {
    bool met = false;              // its greeting has arrived
    bool shares_memory = false;    // as of the last tick
    std::deque<Outgoing> waiting;  // messages that wait for room in the queue
    std::string lost;              // why the connection was lost; empty: it was not
    bool drained = false;          // a Poll after the loss delivered nothing

    // Lost, and all messages the rank had sent before have been handled.
    bool lost_for_good() const { return !lost.empty() && drained; }
  };
  struct Aborted {
    uint32_t rank;
    std::string why;
  };

  absl::Status Meet();
  void Greet(uint32_t rank);
  void ReceiveGreeting(uint32_t rank, Message greeting);
  absl::Status AgreeOnBoard();
  absl::StatusOr<bool> AllSay(bool yes);
  // Polls the board until there is work (true), or until the spin time is over (false).
  bool WatchBoard();
  absl::Time Wait(bool may_sleep);  // handles messages; sleeps only if `may_sleep`
  void Send(Outgoing message);
  // Returns true if the message was sent, or dropped because the rank is lost; false: queue full.
  bool TrySend(uint32_t rank, const Outgoing& message);
  void Retry();
  // Gives the notices of a failure up to 100 ms to leave.
  void Leave();
  // Handles pending messages and, if `wait`, those that arrive within a tick (1 ms while messages
  // wait for room). Returns the time read before polling.
  absl::Time Poll(bool wait);
  void Tick(absl::Time now);
  void ApplyAbort();
  void SetLost(uint32_t rank, std::string why);

  const uint32_t rank_;
  const absl::Duration patience_;
  const absl::Duration spin_;
  Transport& transport_;
  const RealTime time_;
  RankGroup group_;
  std::unique_ptr<MessageBoard> board_;  // null if not all ranks share memory
  std::vector<Link> links_;              // by rank
  size_t waiting_messages_ = 0;          // of all links
  bool unflushed_ = false;               // sent since the last Poll, not through shared memory
  absl::Time next_tick_ = absl::InfinitePast();
  std::atomic<bool> any_aborted_ = false;  // avoids the lock in the common case
  absl::Mutex mutex_;
  std::optional<Aborted> aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_COMMUNICATOR_H_
