// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_RANK_GROUP_H_
#define TUG_COLLECTIVE_RANK_GROUP_H_

// One rank's end of a group whose ranks run collectives together. A state machine: messages and
// ticks in, messages out; no I/O, no clock, no thread. communicator.h drives it.
//
//  - Every rank starts the same collectives in the same order, which numbers them. Several may be
//    in progress. Messages of a collective not started here are kept, up to `early_bytes`; more
//    fail the group.
//  - Every message states the collective as its sender sees it (elements, type, parts, steps). A
//    mismatch fails the group with an error that names both ranks.
//  - Errors, not hangs. A rank in a collective sends kInCollective every timeout / 8 to all ranks
//    that wait for it. A rank that has joined the collective and is then silent for 3/4 of the
//    timeout is declared failed by a rank that waits for it. The declaring rank notifies all
//    others, so ranks that wait for stuck ranks fail too, naming the same rank. A rank that has not
//    joined may be computing: it is declared failed after `patience`, or when the caller learns
//    that it is gone (Abort). A rank that has joined and is alive but sends nothing else is
//    declared failed after twice `patience`: it may wait for another rank, which it then names
//    first. Time for which the waiting rank itself was stopped does not count.
//  - If all ranks share memory, short collectives use a board (message_board.h) instead of
//    messages. A rank looks there for the next message of its plan. A rank that posts and runs
//    ahead waits when another has not taken MessageBoard::kCells of its messages.
//  - Nothing is resent: a lost message shows as silence.
//  - After an error the group is unusable: Start and status() return the error.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/memory/send_buffers.h"
#include "base/own_pauses.h"
#include "collective/collective_header.h"
#include "collective/collective_run.h"
#include "collective/early_messages.h"
#include "collective/element_type.h"
#include "collective/message_board.h"
#include "collective/message_plan.h"
#include "collective/schedules/schedule.h"
#include "transport/transport.h"

namespace tug {

struct RankGroupOptions {
  uint32_t rank = 0;
  std::vector<PeerId> peers;            // by rank, including this one
  std::vector<std::string> names = {};  // by rank, for messages; empty: PeerName
  uint64_t job = 0;
  uint32_t group = 0;                // unique among groups over the same endpoints, past ones too
  uint64_t chunk_bytes = 256 << 10;  // limit of a message; the same on all ranks
  uint64_t early_bytes = uint64_t{1} << 30;    // limit of payloads of collectives not started here
  absl::Duration timeout = absl::Seconds(30);  // see above
  absl::Duration patience = absl::Minutes(10);
};

// Not thread-safe.
class RankGroup {
 public:
  struct Sinks {
    std::function<void(Outgoing)> send;  // must not call back
    std::function<void()> wake;          // ends the driver's wait; called on any thread
  };

  // REQUIRES: rank < peers.size(); no peer twice.
  RankGroup(RankGroupOptions options, Sinks sinks);

  // By rank: whether it is reached over a network; initially none. Messages to such ranks wait for
  // ports (port_order.h). Both ranks of a pair must agree, which is checked.
  void SetOverNetwork(std::vector<bool> over_network);

  // From now on, collectives of buffers of up to MessageBoard::kByteLimit use the board; on all
  // ranks from the same collective on. REQUIRES: the board is complete and outlives the group;
  // earlier collectives are finished before the next Start.
  void UseBoard(MessageBoard* board) { board_ = board; }
  // Whether the oldest running collective uses the board. Its work then shows only in HasBoardWork.
  // Before it waits, the driver calls Nudge, which wakes sleeping ranks that have work on the
  // board.
  bool watches_board() const { return !runs_.empty() && runs_.begin()->second.on_board; }
  bool HasBoardWork() const;
  void Nudge();

  // Starts the next collective: `schedule` is this rank's, the buffer's size a multiple of the
  // type's. Returns its number. The group owns the buffer until the collective is finished. Errors:
  // INVALID_ARGUMENT (the schedule or the size); that of a failed group.
  absl::StatusOr<uint64_t> Start(const CollectiveSchedule& schedule, CollectiveBuffer buffer,
                                 ElementType type, absl::Time now);

  void OnMessage(Message message, absl::Time now);

  // Message that announces this rank before the first collective (number kNoCollective). OnMessage
  // ignores it.
  WireHeader Greeting() const;
  // The rank that sent the greeting; none if it is not a greeting of this job and group.
  std::optional<uint32_t> GreetingFrom(const WireHeader& header) const;

  // Call about every kTick, after handling pending messages.
  void OnTick(absl::Time now);
  static constexpr absl::Duration kTick = absl::Milliseconds(10);

  // Applies one message of the oldest collective that has one. False: none was ready; peers whose
  // memory was read have been notified.
  bool Work();

  // Whether the driver may wait for messages: no work is ready. A read that finishes later calls
  // `wake`.
  bool ReadyToWait();

  // Whether the collective is over on this rank. Then no rank reads its buffer, unless the group
  // has failed (status()).
  bool finished(uint64_t number) const { return number < next_ && runs_.count(number) == 0; }

  // Names the failed rank and the reason; same code on all ranks. UNAVAILABLE: it is gone or stuck;
  // INVALID_ARGUMENT: it runs a different collective; RESOURCE_EXHAUSTED: it is too slow for the
  // others; or the code passed to Abort.
  const absl::Status& status() const { return status_; }
  // The rank that status() names; none while it is OK.
  std::optional<uint32_t> failed_rank() const { return failed_rank_; }

  // The rank's connection is lost and all its messages are delivered. The rank is declared failed
  // once a collective waits for it or has messages for it.
  void OnLost(uint32_t rank, const std::string& why);

  // Declares a rank failed.
  void Abort(uint32_t rank, const std::string& why,
             absl::StatusCode code = absl::StatusCode::kUnavailable);

  std::optional<uint32_t> RankOf(PeerId peer) const;
  PeerId peer(uint32_t rank) const { return options_.peers[rank]; }
  // For messages.
  std::string Name(uint32_t rank) const {
    return options_.names.empty() ? PeerName(peer(rank)) : options_.names[rank];
  }
  uint32_t world() const { return static_cast<uint32_t>(options_.peers.size()); }
  uint64_t ignored_messages() const { return ignored_messages_; }

 private:
  struct PeerTimes {
    absl::Time heard = absl::InfinitePast();  // last message of this collective; never: not in it
    absl::Time elements;                      // its last elements or port word, or the start
    absl::Time told;                          // last message to it
  };
  struct Running {
    std::optional<CollectiveRun> run;  // set for all entries of runs_
    bool on_board = false;
    absl::InlinedVector<PeerTimes, 4> times;  // by rank
  };
  using Runs = std::map<uint64_t, Running>;  // by collective number

  absl::StatusOr<std::shared_ptr<const MessagePlan>> PlanOf(const CollectiveSchedule& schedule,
                                                            uint64_t elements, ElementType type);
  Running& AddRun(uint64_t number);
  void EndRun(Runs::iterator run);
  // Whether nothing is left to do or to post.
  bool IsOver(const Running& running) const;
  // Applies what was posted by the rank whose message is next in the plan. False: nothing was
  // posted.
  bool TakeFromBoard(uint64_t number, Running& running);
  // Checks a posted message that is not taken yet; fails the group on a mismatch.
  void CheckPosted(uint64_t number, const Running& running, uint32_t rank, absl::Time now);
  WireHeader HeaderOf(MessageKind kind) const;
  // This rank's view of the collective, as sent to `rank`.
  CollectiveHeader OwnHeader(uint64_t number, uint32_t rank, const CollectiveRun& run) const;
  // Message of a running collective, without payload. Counts as sent to the rank at once.
  Outgoing MessageTo(MessageKind kind, uint32_t rank, const CollectiveHeader& says);
  void SendElements(uint64_t number, uint32_t rank, uint32_t message, uint64_t first_element,
                    Lease payload);
  void SendPortWord(uint64_t number, const PortWord& word);
  void SendInCollective(uint64_t number, uint32_t rank);
  // Notifies the ranks whose memory was read: they may be waiting only for that.
  void ReportReads(uint64_t number, CollectiveRun& run);
  void KeepEarly(uint32_t rank, Message message);
  void Deliver(uint32_t rank, Message message, absl::Time now);
  // Whether the rank describes the collective as this one does; if not, the group fails.
  bool Agrees(const CollectiveRun& run, uint32_t rank, const CollectiveHeader& says);
  // Whether the run needs messages from the rank, or needs it to be alive.
  bool Needs(const Running& running, uint32_t rank) const {
    return Awaits(running, rank) || running.run->has_unsent(rank);
  }
  // Whether a message or an acknowledgement of the rank is missing. A posted message is not
  // missing, even if it is taken much later.
  bool Awaits(const Running& running, uint32_t rank) const {
    if (!running.on_board) return running.run->awaits(rank);
    return board_->waiting(rank) > 0 || (running.run->awaits(rank) && !board_->HasFirst(rank));
  }
  void OnRankFailed(uint32_t from, const Message& message);
  void CheckPeer(uint64_t number, Running& running, uint32_t rank, absl::Time now);
  // `says`: suffix that names the reporting rank; empty: this rank found the failure.
  void Fail(absl::StatusCode code, uint32_t rank, const std::string& why,
            const std::string& says = "");

  const RankGroupOptions options_;
  const absl::Duration between_words_;  // interval of kInCollective
  OwnPauses own_pauses_;
  const Sinks sinks_;
  std::unordered_map<PeerId, uint32_t> ranks_;
  std::vector<bool> over_network_;                         // by rank
  SendBuffers copies_;                                     // for small payloads
  SendBuffers stage_;                                      // for results that wait for readers
  std::vector<std::shared_ptr<const MessagePlan>> plans_;  // most recently used first
  MessageBoard* board_ = nullptr;                          // null: messages only
  uint64_t next_ = 0;                                      // number of the next collective
  Runs runs_;
  Runs::node_type spare_;  // memory of a finished collective, reused by the next one
  EarlyMessages early_;
  std::map<uint32_t, std::string> lost_;  // lost ranks and why
  uint64_t ignored_messages_ = 0;
  absl::Time now_;
  absl::Status status_;
  std::optional<uint32_t> failed_rank_;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_RANK_GROUP_H_
