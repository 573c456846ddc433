#ifndef TUG_TESTS_HOSTILE_PEER_H_
#define TUG_TESTS_HOSTILE_PEER_H_

// Those who send to a job's ports what no one should. See docs/wire_format.md.

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

// A TCP connection to HOST:PORT of this machine ("tcp://" in front is taken too), closed on
// destruction.
class RawConnection {
 public:
  explicit RawConnection(const std::string& address);
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection();

  bool connected() const { return connected_; }
  // What the other side does not take is given up: it may hang up.
  void Write(const Bytes& bytes);

 private:
  int fd_ = -1;
  bool connected_ = false;
};

// What a ZMTP 3.0 peer without security says first: greeting, then READY as a DEALER named `peer`.
Bytes ZmtpOpening(PeerId peer);
// The head of a frame that claims to have `size_bytes`.
Bytes ZmtpFrameHead(uint64_t size_bytes);

// A DEALER that sends whatever frames it is told. Owned by one thread.
class FramePeer {
 public:
  // Named as `peer`'s connections are.
  FramePeer(const std::string& endpoint, PeerId peer);
  // Any other name; none if empty.
  FramePeer(const std::string& endpoint, const Bytes& routing_id);
  ~FramePeer();

  // Does not wait. The message is lost where the connection has been refused.
  void Send(const std::vector<Bytes>& frames);

 private:
  struct Sockets;
  std::unique_ptr<Sockets> sockets_;
};

// Encodes a header for `payload`, with its size and checksum.
Bytes HeaderBytes(WireHeader header, const Bytes& payload);
// The checksum over a header whose bytes were changed, put right.
void Reseal(Bytes& header);

}  // namespace tug

#endif  // TUG_TESTS_HOSTILE_PEER_H_
