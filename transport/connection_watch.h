// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_CONNECTION_WATCH_H_
#define TUG_TRANSPORT_CONNECTION_WATCH_H_

// Bounds what unauthenticated peers can use of an endpoint with keys. libzmq accepts every
// connection and reads from it; its monitor reports descriptors only, not which connection has
// completed its handshake. The kernel's byte counts show that: an endpoint sends more than
// kMaxBytesToStrangers only to members. ConnectionWatch watches the connections below that limit
// and shuts down
//
//  - the surplus of too many (security/waiting_room.h),
//  - a connection that sends more than kMaxBytesFromStrangers.
//
// libzmq closes a connection that was shut down. It also closes one that does not complete the
// handshake in time.

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
  // Acknowledged bytes. A stranger gets a greeting (64) and at most an error (12). A member also
  // gets WELCOME and READY, more than 50 bytes with PLAIN; with CURVE, WELCOME alone has 170.
  static constexpr uint64_t kMaxBytesToStrangers = 96;
  // A member's handshake is smaller than 1 KiB.
  static constexpr uint64_t kMaxBytesFromStrangers = 64 << 10;

  // `max_waiting`: limit of unauthenticated connections; lower if this process may open few files.
  // Errors: RESOURCE_EXHAUSTED (file descriptors).
  static absl::StatusOr<ConnectionWatch> Create(size_t max_waiting);

  // Call when the endpoint has accepted, or closed, the connection of this descriptor. By then the
  // descriptor may already belong to another connection. `address`: without the port.
  void OnAccepted(int socket, const std::string& address);
  void OnEnded(int socket) { room_.Leave(socket); }
  // Call periodically while not empty().
  void LookAtAll();
  bool empty() const { return room_.guests().empty(); }

 private:
  enum class Verdict { kWaits, kIsIn, kHasGone, kSendsTooMuch };

  ConnectionWatch(size_t max_waiting, FileDescriptor nothing, FileDescriptor hand)
      : room_(max_waiting), nothing_(std::move(nothing)), hand_(std::move(hand)) {}

  // Duplicates the connection into `hand_`, so that its descriptor cannot be reused until Release.
  Verdict VerdictOf(const WaitingRoom::Guest& guest);
  void Release();

  WaitingRoom room_;
  // Descriptors reserved up front, so that strangers can be shut down when the process has none
  // left. `hand_` holds a duplicate of a connection, or of `nothing_`.
  FileDescriptor nothing_;
  FileDescriptor hand_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_CONNECTION_WATCH_H_
