#ifndef TUG_COLLECTIVE_MESSAGE_BOARD_H_
#define TUG_COLLECTIVE_MESSAGE_BOARD_H_

// Short messages between ranks that share memory, with nothing between: a rank writes what it has
// for another one into memory of its own that the other one reads, and the other one sums from
// there. What such a message costs is the time in which its cache lines go from one core to the
// other.
//
//  - A rank's board has some cells for each other rank, used in turns. A cell has a header, a
//    payload, and how many messages were posted with it: that is written last by who posts, and
//    looked at by who waits.
//  - A board also says how many messages its rank has taken from each other one. Where there is
//    no cell for a message, it waits on the side of who posts it, until Flush finds that one was
//    taken.
//  - Nobody writes on another's board, and nobody is woken by it. Who is about to sleep says so on
//    its own (SetAsleep), looks once more, and is to be woken by a word over another way: Nudge
//    says whom. A rank is asleep until it first says that it is not.
//
// The other ranks are other processes: what they write can break their own messages only.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"
#include "proto/wire.h"

namespace tug {

// Not thread-safe.
class MessageBoard {
 public:
  static constexpr size_t kMostBytes = 8 << 10;  // of a payload
  static constexpr uint32_t kCells = 8;          // for each other rank

  // Of a rank's board, for so many ranks.
  static size_t BoardBytes(uint32_t world);

  // `own`: memory that the other ranks can read. REQUIRES: BoardBytes(world) bytes.
  MessageBoard(uint32_t rank, uint32_t world, std::shared_ptr<AlignedBuffer> own);

  // What the other ranks are to have of us.
  Lease own() const;
  // Another rank's, of which the lease is kept. Returns whether it can be one.
  bool Open(uint32_t rank, Lease board);
  // Whether all others' are there.
  bool complete() const { return opened_ + 1 == peers_.size(); }

  // Copies a message to a rank. Messages from one rank to another keep their order. REQUIRES: the
  // rank's board is open; at most kMostBytes.
  void Post(uint32_t rank, const WireHeader& header, std::span<const std::byte> payload);
  // Posts what has waited for cells of which there are some. Whether anything was, or can be.
  bool Flush();
  bool CanFlush() const;
  // Messages that wait for a cell: to a rank, to all.
  size_t waiting(uint32_t rank) const { return peers_[rank].waiting.size(); }
  size_t waiting() const { return waiting_; }

  struct Posted {
    WireHeader header;                   // as it was posted, if the rank is well; else anything
    std::span<const std::byte> payload;  // the rank's memory, until Take
  };
  // The oldest message of a rank that has not been taken. REQUIRES, here and below: the rank's
  // board is open.
  std::optional<Posted> First(uint32_t rank) const;
  bool HasFirst(uint32_t rank) const;
  // REQUIRES: there is one.
  void Take(uint32_t rank);

  // Calls `wake` for each rank for which there is something to do since the last Nudge, and that
  // was about to sleep: one that was posted to, or taken from. To be called before one sleeps or
  // does something else.
  void Nudge(const std::function<void(uint32_t rank)>& wake);
  void SetAsleep(bool asleep);
  // Whether no other rank is asleep. REQUIRES: complete.
  bool AllAwake() const;

 private:
  struct Cell {
    alignas(64) std::atomic<uint64_t> posted;  // messages of this pair, up to this one
    WireHeader header;
  };
  // What a board holds about one other rank; first what is touched even if nothing is ever posted.
  struct Page {
    alignas(64) std::atomic<uint64_t> taken;                                     // of its messages
    std::array<Cell, kCells> cells;                                              // for it
    alignas(64) std::array<std::array<std::byte, kMostBytes>, kCells> payloads;  // by cell
  };
  struct Board {
    alignas(64) std::atomic<uint32_t> asleep;
    // then a Page for each rank
  };
  struct Waiting {
    WireHeader header;
    std::vector<std::byte> payload;
  };
  struct Peer {
    Lease lease;  // of its board
    const Board* board = nullptr;
    uint64_t posted = 0;              // to it
    mutable uint64_t seen_taken = 0;  // of these, as of the last look
    uint64_t taken = 0;               // from it
    bool nudged = true;               // since something was posted to it, or taken from it
    std::deque<Waiting> waiting;
  };

  Page& OwnPage(uint32_t rank);
  // What a rank has for us.
  const Page& PageOf(uint32_t rank) const;
  const Cell& NextCell(uint32_t rank) const;  // of those for us
  bool HasCell(uint32_t rank) const;
  void Write(uint32_t rank, const WireHeader& header, std::span<const std::byte> payload);

  const uint32_t rank_;
  const std::shared_ptr<AlignedBuffer> memory_;
  Board* const own_;
  std::vector<Peer> peers_;  // by rank
  size_t opened_ = 0;
  size_t waiting_ = 0;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_MESSAGE_BOARD_H_
