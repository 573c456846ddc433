#ifndef TUG_TRANSPORT_CONNECTION_WATCH_H_
#define TUG_TRANSPORT_CONNECTION_WATCH_H_

// Bounds what strangers take of an endpoint with keys. libzmq accepts every connection and reads
// from it, whoever it is from; its monitor tells of descriptors only, and not which connection has
// completed its handshake. The kernel does: an endpoint says more than kMostToStrangers to members
// only. This watches the connections that have not come so far, and shuts down
//
//  - the surplus of too many (security/waiting_room.h),
//  - who sends more than kMostFromStrangers.
//
// libzmq closes what is shut down. It also closes who has not completed the handshake in time.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "security/waiting_room.h"

namespace tug {

// Not thread-safe.
class ConnectionWatch {
 public:
  // Acknowledged bytes. A stranger is sent a greeting (64) and at most an error (12); with PLAIN a
  // member gets WELCOME and READY, more than 50 bytes; with CURVE WELCOME has 170.
  static constexpr uint64_t kMostToStrangers = 96;
  // A member's handshake has less than 1 KiB.
  static constexpr uint64_t kMostFromStrangers = 64 << 10;

  // `most_waiting`: connections of strangers; fewer where this process may open few files. Errors:
  // RESOURCE_EXHAUSTED (files).
  static absl::StatusOr<ConnectionWatch> Create(size_t most_waiting);

  // The endpoint has accepted, or closed, the connection of that descriptor; by now it may be
  // another's. `address`: without the port.
  void OnAccepted(int socket, const std::string& address);
  void OnEnded(int socket) { room_.Leave(socket); }
  // To be called now and then while there are any.
  void LookAtAll();
  bool empty() const { return room_.guests().empty(); }

 private:
  enum class Verdict { kWaits, kIsIn, kHasGone, kSendsTooMuch };

  ConnectionWatch(size_t most_waiting, FileDescriptor nothing, FileDescriptor hand)
      : room_(most_waiting), nothing_(std::move(nothing)), hand_(std::move(hand)) {}

  // Holds the connection in `hand_` from then on, so that its descriptor cannot become another's.
  Verdict VerdictOf(const WaitingRoom::Guest& guest);
  void Release();

  WaitingRoom room_;
  // Descriptors of our own, so that strangers can be let go when there are none left: `hand_` holds
  // a connection, or the same as `nothing_`.
  FileDescriptor nothing_;
  FileDescriptor hand_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_CONNECTION_WATCH_H_
