// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_MESSAGE_BOARD_H_
#define TUG_COLLECTIVE_MESSAGE_BOARD_H_

// Short messages between ranks that share memory, without a transport: a rank writes a message into
// its own memory, and the receiver sums from there. A message costs the transfer of its cache lines
// from one core to another.
//
//  - A rank's board has kCells cells for each other rank, used in turn. A cell holds a header, a
//    payload, and the number of messages posted to that rank so far. The poster writes the number
//    last, and the receiver polls it.
//  - A board also holds the number of messages its rank has taken from each other rank. A message
//    without a free cell waits at its poster until Flush finds that one was taken.
//  - A rank writes only to its own board, which wakes no peer. A rank that is about to sleep sets a
//    flag on its board (SetAsleep) and checks once more; peers must then wake it another way: Nudge
//    names the ranks to wake. A rank counts as asleep until it first clears its flag.
//
// Other ranks are other processes: what they write can break only their own messages.

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

#include "base/memory/lease.h"
#include "proto/wire.h"

namespace tug {

// Not thread-safe.
class MessageBoard {
 public:
  static constexpr size_t kByteLimit = 8 << 10;  // limit of a payload
  static constexpr uint32_t kCells = 8;          // for each other rank

  // Size of a rank's board in a group of `world` ranks.
  static size_t BoardBytes(uint32_t world);

  // `own`: memory readable by the other ranks. REQUIRES: BoardBytes(world) bytes.
  MessageBoard(uint32_t rank, uint32_t world, std::shared_ptr<AlignedBuffer> own);

  // This rank's board, to be sent to the others.
  Lease own() const;
  // Opens another rank's board and keeps its lease. False: size or alignment is wrong.
  bool Open(uint32_t rank, Lease board);
  // Whether the boards of all other ranks are open.
  bool complete() const { return opened_ + 1 == peers_.size(); }

  // Copies a message to a rank. Messages from one rank to another keep their order. REQUIRES: the
  // rank's board is open; payload of at most kByteLimit.
  void Post(uint32_t rank, const WireHeader& header, std::span<const std::byte> payload);
  // Posts waiting messages into cells that have become free. Flush returns whether it posted one,
  // CanFlush whether it would.
  bool Flush();
  bool CanFlush() const;
  // Messages that wait for a free cell: to a rank; to all ranks.
  size_t waiting(uint32_t rank) const { return peers_[rank].waiting.size(); }
  size_t waiting() const { return waiting_; }

  struct Posted {
    WireHeader header;                   // as posted if the rank is sound; else arbitrary
    std::span<const std::byte> payload;  // in the rank's memory, valid until Take
  };
  // Oldest message of a rank that was not taken. REQUIRES, here and below: the rank's board is
  // open.
  std::optional<Posted> First(uint32_t rank) const;
  bool HasFirst(uint32_t rank) const;
  // REQUIRES: HasFirst.
  void Take(uint32_t rank);

  // Calls `wake` for each sleeping rank that this rank has posted to, or taken from, since the last
  // Nudge. Call before sleeping or doing other work.
  void Nudge(const std::function<void(uint32_t rank)>& wake);
  void SetAsleep(bool asleep);
  // Whether no other rank is asleep. REQUIRES: complete.
  bool AllAwake() const;

 private:
  struct Cell {
    alignas(64) std::atomic<uint64_t> posted;  // messages of this pair, including this one
    WireHeader header;
  };
  // Part of a board for one other rank. `taken` is first: it is read even if nothing is posted.
  struct Page {
    alignas(64) std::atomic<uint64_t> taken;  // number of its messages taken
    std::array<Cell, kCells> cells;           // messages to it
    alignas(64) std::array<std::array<std::byte, kByteLimit>, kCells> payloads;  // by cell
  };
  struct Board {
    alignas(64) std::atomic<uint32_t> asleep;
    // A Page for each rank follows.
  };
  struct Waiting {
    WireHeader header;
    std::vector<std::byte> payload;
  };
  struct Peer {
    Lease lease;  // of its board
    const Board* board = nullptr;
    uint64_t posted = 0;              // messages to it
    mutable uint64_t seen_taken = 0;  // of these, known to be taken
    uint64_t taken = 0;               // messages from it
    bool nudged = true;               // nothing posted to it or taken from it since the last Nudge
    std::deque<Waiting> waiting;
  };

  Page& OwnPage(uint32_t rank);
  // This rank's page on another rank's board.
  const Page& PageOf(uint32_t rank) const;
  const Cell& NextCell(uint32_t rank) const;  // of the page for this rank
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
