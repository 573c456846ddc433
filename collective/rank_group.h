#ifndef TUG_COLLECTIVE_RANK_GROUP_H_
#define TUG_COLLECTIVE_RANK_GROUP_H_

// A rank's end of a group whose ranks run collectives together. A state machine: messages and ticks
// in, messages out; no I/O, no clock, no thread. communicator.h drives it.
//
//  - Every rank starts the same collectives in the same order; they are numbered by it. Several may
//    be under way. What comes for one that this rank has not started yet is kept, up to
//    `early_bytes`.
//  - All messages say what their sender takes the collective to be (elements, type, parts, steps).
//    A difference fails the group, naming both ranks.
//  - Errors, not hangs. A rank that is in a collective says so (kInCollective) every timeout / 8 to
//    all who wait for it. Who waits for a rank that has been in it, and hears nothing of it for 3/4
//    of the timeout, gives it up. Who gives a rank up tells all others, so that those who wait for
//    ranks that are stuck themselves fail too, naming the same rank. A rank that is not in the
//    collective yet may be computing: it is given up after `patience`, or when the caller (Abort)
//    learns that it is gone. A rank that is in it, alive, and sends nothing is given up after twice
//    `patience`: it may wait for another, which is then named before by it. A rank gets as much
//    longer as the one that waits was stopped itself.
//  - Where all ranks share memory, short collectives go over a board (message_board.h) in place of
//    messages. A rank looks there for the message that is next in its plan. Who posts and goes on
//    waits once a rank has not taken MessageBoard::kCells of its messages.
//  - Nothing is sent twice: a message that is lost is found as silence.
//  - After an error the group is of no use: Start and status() say why.

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
#include "base/own_pauses.h"
#include "collective/collective_header.h"
#include "collective/collective_run.h"
#include "collective/early_messages.h"
#include "collective/element_type.h"
#include "collective/message_board.h"
#include "collective/message_plan.h"
#include "collective/schedule.h"
#include "exchange/send_buffers.h"
#include "transport/transport.h"

namespace tug {

struct RankGroupOptions {
  uint32_t rank = 0;
  std::vector<PeerId> peers;  // by rank, one's own too
  uint64_t job = 0;
  uint32_t group = 0;  // its number: those of the same endpoints differ, also one after another
  uint64_t chunk_bytes = 256 << 10;            // of a message; the same on all ranks
  uint64_t early_bytes = uint64_t{1} << 30;    // payloads for collectives that are not started here
  absl::Duration timeout = absl::Seconds(30);  // see above
  absl::Duration patience = absl::Minutes(10);
};

// Not thread-safe.
class RankGroup {
 public:
  struct Sinks {
    std::function<void(Outgoing)> send;  // does not call back
    std::function<void()> wake;          // ends the driver's wait; on any thread
  };

  // REQUIRES: rank < peers.size(); peers differ.
  RankGroup(RankGroupOptions options, Sinks sinks);

  // Which ranks are reached over a network, by rank; none until it is said. Their messages wait for
  // ports (port_order.h). That a pair of ranks agrees is checked.
  void SetOverNetwork(std::vector<bool> over_network);

  // Collectives of buffers of up to MessageBoard::kMostBytes go over it from then on: on all ranks
  // from the same collective on. REQUIRES: it is complete and outlives the group; Start is called
  // when what was started before is finished.
  void UseBoard(MessageBoard* board) { board_ = board; }
  // Whether a collective goes over the board: then nothing tells that there is something at hand,
  // but HasBoardWork; and before the driver waits it calls Nudge, which wakes ranks that sleep
  // while there is something for them on the board.
  bool watches_board() const { return !runs_.empty() && runs_.begin()->second.on_board; }
  bool HasBoardWork() const;
  void Nudge();

  // Begins the next collective: `schedule` is this rank's, the buffer's size a multiple of the
  // type's. Returns its number. The buffer is the group's until it is finished. Errors:
  // INVALID_ARGUMENT (the schedule, the size), and that of a failed group.
  absl::StatusOr<uint64_t> Start(const CollectiveSchedule& schedule, CollectiveBuffer buffer,
                                 ElementType type, absl::Time now);

  void OnMessage(Message message, absl::Time now);

  // A word to say before the first collective, of no collective (kNoCollective), that the sender is
  // there. OnMessage ignores it.
  WireHeader Greeting() const;
  // The rank that greets with it; nothing if it is no greeting of this job and group.
  std::optional<uint32_t> GreetingFrom(const WireHeader& header) const;

  // To be called every kTick or so, after the messages at hand.
  void OnTick(absl::Time now);
  static constexpr absl::Duration kTick = absl::Milliseconds(10);

  // Applies one message, of the oldest collective that has one; false: there is none at hand, and
  // the peers know what was read.
  bool Work();

  // Whether to wait for messages: nothing is at hand. `wake` is called if something was read.
  bool ReadyToWait();

  // Whether the collective is over on this rank, in which case nobody reads its buffer any more; or
  // never will be (status()).
  bool finished(uint64_t number) const { return number < next_ && runs_.count(number) == 0; }

  // Which rank is at fault, and how; the same code on all ranks. UNAVAILABLE: it is gone, or stuck;
  // INVALID_ARGUMENT: it runs something else; RESOURCE_EXHAUSTED: it is too slow for the others;
  // and what Abort was given.
  const absl::Status& status() const { return status_; }
  // Whom status() names; none while it is OK.
  std::optional<uint32_t> failed_rank() const { return failed_rank_; }

  // The rank's connection is lost, and all that came over it delivered: it is given up when a
  // collective needs more of it, or has something to send to it.
  void OnLost(uint32_t rank, const std::string& why);

  // Gives a rank up.
  void Abort(uint32_t rank, const std::string& why,
             absl::StatusCode code = absl::StatusCode::kUnavailable);

  std::optional<uint32_t> RankOf(PeerId peer) const;
  PeerId peer(uint32_t rank) const { return options_.peers[rank]; }
  uint32_t world() const { return static_cast<uint32_t>(options_.peers.size()); }
  uint64_t ignored_messages() const { return ignored_messages_; }

 private:
  struct PeerTimes {
    absl::Time heard = absl::InfinitePast();  // of this collective; never: not in it yet
    absl::Time elements;                      // its last message with elements, or the start
    absl::Time told;                          // our last word
  };
  struct Running {
    std::optional<CollectiveRun> run;  // always, in runs_
    bool on_board = false;
    absl::InlinedVector<PeerTimes, 4> times;  // by rank
  };
  using Runs = std::map<uint64_t, Running>;  // by number

  absl::StatusOr<std::shared_ptr<const MessagePlan>> PlanOf(const CollectiveSchedule& schedule,
                                                            uint64_t elements, ElementType type);
  Running& AddRun(uint64_t number);
  void EndRun(Runs::iterator run);
  // Whether nothing is left to do, nor to post.
  bool IsOver(const Running& running) const;
  // Applies what is posted by the rank whose message is next in the plan; false: nothing is.
  bool TakeFromBoard(uint64_t number, Running& running);
  // What a rank has posted that is not to be taken: is it what it should be?
  void CheckPosted(uint64_t number, const Running& running, uint32_t rank, absl::Time now);
  WireHeader HeaderOf(MessageKind kind) const;
  // What this rank takes the collective to be, for `rank`.
  CollectiveHeader OwnHeader(uint64_t number, uint32_t rank, const CollectiveRun& run) const;
  // Of a collective under way, without its payload. It is sent at once: the rank counts as told.
  Outgoing MessageTo(MessageKind kind, uint32_t rank, const CollectiveHeader& says);
  void SendElements(uint64_t number, uint32_t rank, uint32_t message, uint64_t first_element,
                    Lease payload);
  void SayPortWord(uint64_t number, const PortWord& word);
  void SayInCollective(uint64_t number, uint32_t rank);
  // Wakes those whose memory was read: they may wait for that alone.
  void TellReads(uint64_t number, CollectiveRun& run);
  void KeepEarly(uint32_t rank, Message message);
  void Deliver(uint32_t rank, Message message, absl::Time now);
  // Whether the rank takes the collective to be what we do; else the group has failed.
  bool Agrees(const CollectiveRun& run, uint32_t rank, const CollectiveHeader& says);
  // Whether the run cannot end without more from the rank, or without it being there.
  bool Needs(const Running& running, uint32_t rank) const {
    return Awaits(running, rank) || running.run->has_unsent(rank);
  }
  // Whether something of the rank is missing, be it that it takes something. What it has posted is
  // not missing, though it may be taken much later.
  bool Awaits(const Running& running, uint32_t rank) const {
    if (!running.on_board) return running.run->awaits(rank);
    return board_->waiting(rank) > 0 || (running.run->awaits(rank) && !board_->HasFirst(rank));
  }
  void OnRankFailed(uint32_t from, const Message& message);
  void CheckPeer(uint64_t number, Running& running, uint32_t rank, absl::Time now);
  // `says`: who told us, empty if nobody.
  void Fail(absl::StatusCode code, uint32_t rank, const std::string& why,
            const std::string& says = "");

  const RankGroupOptions options_;
  const absl::Duration between_words_;  // of a rank that is at work
  OwnPauses own_pauses_;
  const Sinks sinks_;
  std::unordered_map<PeerId, uint32_t> ranks_;
  std::vector<bool> over_network_;                         // by rank
  SendBuffers copies_;                                     // small payloads
  SendBuffers stage_;                                      // results that wait for readers
  std::vector<std::shared_ptr<const MessagePlan>> plans_;  // the last used ones first
  MessageBoard* board_ = nullptr;                          // none: messages alone
  uint64_t next_ = 0;                                      // number
  Runs runs_;
  Runs::node_type spare_;  // the memory of a collective that is over, for the next one
  EarlyMessages early_;
  std::map<uint32_t, std::string> lost_;  // ranks, and why
  uint64_t ignored_messages_ = 0;
  absl::Time now_;
  absl::Status status_;
  std::optional<uint32_t> failed_rank_;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_RANK_GROUP_H_
