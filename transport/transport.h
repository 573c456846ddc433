// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_TRANSPORT_H_
#define TUG_TRANSPORT_TRANSPORT_H_

// Messages between any two endpoints of the data plane. An endpoint is a lane or a worker; it owns
// one Transport and uses it from one thread at a time. Implementations: ZmqTransport
// (zmq_transport.h), ShmTransport (shm_transport.h), both behind DualTransport (dual_transport.h),
// and SimulatedTransport (transport/simulated/simulated_network.h); ImpairedTransport
// (impaired_transport.h) wraps one.
//
// Contract, for all implementations:
//  - Delivered messages are complete and checked: DecodeHeader passed, the payload has
//    header.payload_bytes bytes and, if payload_xxh3 is not 0, that checksum; header.sender is the
//    peer that sent it. Any other message is counted in `counters().dropped`, logged once per kind
//    of fault, and never delivered.
//  - A payload begins at a multiple of kPayloadAlignment, so it can be read as numbers in place.
//  - Messages may be lost when a peer dies or a connection breaks; the simulated network also
//    delays, reorders and repeats them. The state machines above tolerate that.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/memory/lease.h"
#include "proto/wire.h"

namespace tug {

// Unique name of an endpoint within the job: lanes by lane number (blocks/view_lanes.h), workers by
// node id.
using PeerId = uint32_t;
inline constexpr PeerId kWorkerBit = 0x80000000u;
inline constexpr PeerId LanePeer(uint32_t lane) { return lane + 1; }
inline constexpr PeerId WorkerPeer(uint32_t node_id) { return kWorkerBit | node_id; }
inline constexpr bool IsWorker(PeerId peer) { return (peer & kWorkerBit) != 0; }

// For logs, where names of processes are unknown: "lane 3", "node 7".
std::string PeerName(PeerId peer);

inline constexpr size_t kPayloadAlignment = 8;  // bytes; FP64 sums are the widest elements

// Owner of the memory that holds a received payload.
enum class Home : uint8_t {
  kReceiver,  // this process: the holder of the message may write it (WritableFloats)
  kSender,    // the sender, mapped read-only: the bytes stay unchanged while a copy of the lease
              // lives, and parts of one buffer of the sender are adjacent here as well
};

struct Message {
  WireHeader header;
  Lease payload;  // where it arrived; valid while a copy of the lease lives
  Home home = Home::kReceiver;

  // REQUIRES: Home::kReceiver, and no other reader of this message's payload.
  std::span<float> WritableFloats() const {
    const std::span<const float> floats = payload.floats();
    return {const_cast<float*>(floats.data()), floats.size()};
  }
};

// A message to send.
struct Outgoing {
  PeerId to = 0;
  WireHeader header;  // the transport fills in sender, payload_bytes and payload_xxh3
  // Released, on any thread, when the transport has read it; do not change the bytes before that.
  // REQUIRES: at most kMaxPayloadBytes (or the transport's own, smaller limit).
  Lease payload;
};

struct TransportCounters {
  uint64_t sent_messages = 0;
  uint64_t sent_bytes = 0;  // headers and payloads
  // Part of sent_bytes written to a socket: all except payloads that peers read in shared memory.
  uint64_t socket_bytes = 0;
  uint64_t received_messages = 0;
  uint64_t received_bytes = 0;
  uint64_t lost = 0;     // accepted by Send, then discarded: the peer was gone
  uint64_t dropped = 0;  // malformed, oversized, wrong checksum, unknown version, false sender
  uint64_t connections_refused = 0;  // peers without the job's keys

  uint64_t shared_memory_bytes() const { return sent_bytes - socket_bytes; }
};

// Used by one thread at a time (the caller orders them, as by a mutex), except Wake, NewBuffer and
// SharedBytes, which are thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;

  // Makes `peer` reachable at `endpoint`, which replaces a previous one; no effect if it is already
  // connected there. Peers that connect to us need no call. Does not wait for the peer.
  // INVALID_ARGUMENT: not an endpoint.
  virtual absl::Status Connect(PeerId peer, const std::string& endpoint) = 0;

  // Accepts a message for sending; never blocks. It leaves at the latest with the next Poll,
  // possibly together with others to the same peer; messages to one peer leave in call order.
  // NOT_FOUND: the peer is not reachable (never connected, or gone); RESOURCE_EXHAUSTED: the
  // bounded queue to it is full. Both drop the message. If the peer turns out to be gone after Send
  // has returned, `counters().lost` counts the message and the next Send fails.
  virtual absl::Status Send(Outgoing message) = 0;

  // Waits for a message, a Wake, or `timeout`; calls `handler` for the available messages, at most
  // about `kMaxBatch` (messages that arrived in one ZeroMQ message are delivered together).
  // Messages sent by the handler have left when Poll returns. The handler may call Send and
  // Connect, not Poll.
  virtual void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) = 0;
  static constexpr int kMaxBatch = 64;

  // Ends a Poll in progress, or the next one, early. Thread-safe.
  virtual void Wake() = 0;

  virtual TransportCounters counters() const = 0;

  // Whether messages to and from `peer` go through shared memory: payloads in memory of NewBuffer
  // are read in place, others are copied.
  virtual bool SharesMemoryWith(PeerId /*peer*/) const { return false; }

  // Buffer from which payloads are sent with the fewest copies: shared with the peers on this host
  // if possible. Contents unspecified. Thread-safe; the buffer may outlive the transport.
  virtual std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes) {
    return std::make_shared<AlignedBuffer>(size_bytes);
  }

  // Touched memory of this process that peers may read: buffers from NewBuffer, and copies made for
  // sending. Asks the kernel, so do not call it per message. Thread-safe.
  virtual uint64_t SharedBytes() const { return 0; }
};

}  // namespace tug

#endif  // TUG_TRANSPORT_TRANSPORT_H_
