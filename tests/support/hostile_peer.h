// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TESTS_SUPPORT_HOSTILE_PEER_H_
#define TUG_TESTS_SUPPORT_HOSTILE_PEER_H_

// Peers that send invalid data to a job's ports. See docs/wire_format.md.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/wire.h"
#include "transport/transport.h"

namespace tug {

using Bytes = std::vector<std::byte>;
Bytes operator+(Bytes a, const Bytes& b);
Bytes BytesOf(const std::string& text);

// A TCP connection to a port of this machine, closed on destruction. `address`: HOST:PORT, of which
// only the port is used; a "tcp://" prefix is allowed.
class RawConnection {
 public:
  explicit RawConnection(const std::string& address);
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection();

  bool connected() const { return connected_; }
  // Non-blocking: drops the rest once the other side does not accept more or has hung up.
  void Write(const Bytes& bytes);

 private:
  int fd_ = -1;
  bool connected_ = false;
};

// First bytes of a ZMTP 3.0 peer without security: greeting, then READY as a DEALER named `peer`.
Bytes ZmtpOpening(PeerId peer);
// Header of a frame that claims to have `size_bytes`.
Bytes ZmtpFrameHead(uint64_t size_bytes);

// A DEALER that sends arbitrary frames. Owned by one thread.
class FramePeer {
 public:
  // Uses the routing id of `peer`'s connections.
  FramePeer(const std::string& endpoint, PeerId peer);
  // Uses any other routing id; none if empty.
  FramePeer(const std::string& endpoint, const Bytes& routing_id);
  ~FramePeer();

  // Non-blocking. The message is lost if the connection was refused.
  void Send(const std::vector<Bytes>& frames);

 private:
  struct Sockets;
  std::unique_ptr<Sockets> sockets_;
};

// Encodes a header for `payload`, setting its size and checksum.
Bytes HeaderBytes(WireHeader header, const Bytes& payload);
// Recomputes the header's checksum after its bytes were changed.
void Reseal(Bytes& header);

}  // namespace tug

#endif  // TUG_TESTS_SUPPORT_HOSTILE_PEER_H_
