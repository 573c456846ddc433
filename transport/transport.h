#ifndef TUG_TRANSPORT_TRANSPORT_H_
#define TUG_TRANSPORT_TRANSPORT_H_

// Messages between any two endpoints of the data plane. An endpoint is a lane or a worker; it owns
// one Transport and uses it from one thread at a time. Implementations: ZmqTransport
// (zmq_transport.h), SimulatedTransport (simulated_network.h).
//
// Contract, for all implementations:
//  - What arrives is whole and checked: DecodeHeader passed, the payload has header.payload_bytes
//    bytes and, where payload_xxh3 is not 0, that checksum; header.sender is the peer it came from.
//    Anything else is counted in `counters().dropped`, logged once per kind of fault, and never
//    delivered.
//  - A payload begins at a multiple of kPayloadAlignment, so it can be read as numbers in place.
//  - Messages may be lost when a peer dies or a connection breaks, and the simulated network also
//    delays, reorders and repeats them. The state machines above live with that.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/lease.h"
#include "proto/wire.h"

namespace tug {

// Names an endpoint in the whole job: lanes by lane number (exchange/view_lanes.h), workers by node
// id.
using PeerId = uint32_t;
inline constexpr PeerId kWorkerBit = 0x80000000u;
inline constexpr PeerId LanePeer(uint32_t lane) { return lane + 1; }
inline constexpr PeerId WorkerPeer(uint32_t node_id) { return kWorkerBit | node_id; }
inline constexpr bool IsWorker(PeerId peer) { return (peer & kWorkerBit) != 0; }

// For messages to people: "lane 3", "worker 7".
std::string PeerName(PeerId peer);

inline constexpr size_t kPayloadAlignment = 8;  // bytes; FP64 sums are the widest elements

// Whose memory a received payload lies in.
enum class Home : uint8_t {
  kReceiver,  // ours alone: the holder of the message may write it (WritableFloats)
  kSender,  // the sender's, mapped read-only: its bytes stay as they are while a copy of the lease
            // lives, and parts of one buffer of the sender adjoin here as they do there
};

struct Message {
  WireHeader header;
  Lease payload;  // in place, where it arrived; valid while a copy of the lease lives
  Home home = Home::kReceiver;

  // REQUIRES: Home::kReceiver, and that nobody else reads this message's payload.
  std::span<float> WritableFloats() const {
    const std::span<const float> floats = payload.floats();
    return {const_cast<float*>(floats.data()), floats.size()};
  }
};

// What a state machine asks to be sent.
struct Outgoing {
  PeerId to = 0;
  WireHeader header;  // sender, payload_bytes and payload_xxh3 are filled in by the transport
  // Released when the transport no longer reads it, on any thread; its bytes must not change until
  // then. REQUIRES: at most kMaxPayloadBytes (or the transport's own, smaller limit).
  Lease payload;
};

struct TransportCounters {
  uint64_t sent_messages = 0;
  uint64_t sent_bytes = 0;  // headers and payloads
  // What of sent_bytes was given to a socket: all but what peers read in shared memory.
  uint64_t socket_bytes = 0;
  uint64_t received_messages = 0;
  uint64_t received_bytes = 0;
  uint64_t lost = 0;     // taken by Send, then given up: the peer was gone
  uint64_t dropped = 0;  // malformed, oversized, wrong checksum, unknown version, sender not who it
                         // says
  uint64_t connections_refused = 0;  // of those who have not the job's keys
};

// Used by one thread at a time (the caller orders them, as by a mutex); Wake, NewBuffer and
// SharedBytes by any.
class Transport {
 public:
  virtual ~Transport() = default;

  // Makes `peer` reachable at `endpoint`, in place of where it was before; one that is connected
  // there stays so. Peers that connect to us need no call. Does not wait for the peer.
  // INVALID_ARGUMENT: not an endpoint.
  virtual absl::Status Connect(PeerId peer, const std::string& endpoint) = 0;

  // Hands a message over; never blocks. It is on its way at the latest at the next Poll, with
  // others to the same peer; messages to one peer leave in the order of their Sends.
  // NOT_FOUND: the peer is not reachable (never connected, or gone); RESOURCE_EXHAUSTED: the
  // bounded queue to it is full. In both cases the message is dropped. Where it is seen only after
  // Send has returned that the peer is gone, the message is in `counters().lost`, and the next Send
  // says so.
  virtual absl::Status Send(Outgoing message) = 0;

  // Waits until a message, a Wake, or `timeout`; calls `handler` for messages at hand, about
  // `kMaxBatch` of them at most (those that came as one are delivered as one). What the handler
  // sends is on its way when Poll returns. The handler may call Send and Connect, not Poll.
  virtual void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) = 0;
  static constexpr int kMaxBatch = 64;

  // Ends a Poll in progress, or the next one, early. Thread-safe.
  virtual void Wake() = 0;

  virtual TransportCounters counters() const = 0;

  // Whether what is sent to `peer`, and comes from it, goes through memory that both have: payloads
  // in memory of NewBuffer are read where they lie, others are copied.
  virtual bool SharesMemoryWith(PeerId /*peer*/) const { return false; }

  // Memory to send payloads from with the fewest copies: shared with the peers on this host where
  // there are such. Contents unspecified. Thread-safe; the buffer may outlive the transport.
  virtual std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes) {
    return std::make_shared<AlignedBuffer>(size_bytes);
  }

  // Memory of this process's own that peers may read, as touched: what NewBuffer has given, and
  // copies made to be sent. Not for every message: it asks the kernel. Thread-safe.
  virtual uint64_t SharedBytes() const { return 0; }
};

}  // namespace tug

#endif  // TUG_TRANSPORT_TRANSPORT_H_
