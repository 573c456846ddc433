// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LIMITS_RAW_SOCKET_H_
#define TUG_LIMITS_RAW_SOCKET_H_

// TCP sockets for measurements, with kernel defaults except TCP_NODELAY.

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/file.h"

namespace tug {

struct ListeningSocket {
  FileDescriptor fd;
  uint16_t port = 0;
};

// Listens on a free port of an IPv4 address of this host. Errors of all functions: INTERNAL, with
// the system's message.
absl::StatusOr<ListeningSocket> ListenAt(const std::string& address);
// Accepts the next connection. DEADLINE_EXCEEDED: none came.
absl::StatusOr<FileDescriptor> Accept(const ListeningSocket& listener, absl::Duration patience);
// UNAVAILABLE: refused, no route, or no reply in time.
absl::StatusOr<FileDescriptor> Connect(const std::string& address, uint16_t port,
                                       absl::Duration patience);
absl::Status SendAll(int fd, std::span<const char> bytes);
// OUT_OF_RANGE: the peer closed the connection before all bytes arrived.
absl::Status ReceiveAll(int fd, std::span<char> bytes);

}  // namespace tug

#endif  // TUG_LIMITS_RAW_SOCKET_H_
