// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_ZMQ_TRANSPORT_H_
#define TUG_TRANSPORT_ZMQ_TRANSPORT_H_

// Transport over TCP by ZeroMQ.
//
//  - One bound ROUTER for the peers that connect to us, one DEALER per peer we connect to. A peer
//    reached both ways is sent to over the DEALER.
//  - A ZeroMQ message has two frames: headers, then payloads (an empty frame if there are none).
//    Messages with small payloads wait for the next Poll and travel together (record_batch.h); a
//    larger one leaves at once, after the waiting ones.
//  - A DEALER's routing id is RoutingId(self), so the ROUTER recognises a peer across reconnects; a
//    second connection with the same id replaces the first.
//  - Larger payloads are sent from the leased memory. Payloads are delivered in the memory they
//    were received into, shared by messages that travelled together; only misaligned ones (some
//    below 8 KiB) are copied.
//  - In steady state our code allocates nothing per message: state that lives until a lease ends is
//    in blocks of a pool.
//  - A DEALER sends heartbeats (ZMTP's PING). When another connection takes a routing id, the
//    ROUTER keeps the old one open but no longer reads it; only missing heartbeat replies make its
//    DEALER reconnect.
//  - A DEALER reconnects by itself and keeps the messages queued for an absent peer; the ROUTER
//    returns NOT_FOUND at once for a peer that is not connected.

#include <poll.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/memory/block_pool.h"
#include "security/job_keys.h"
#include "transport/admission.h"
#include "transport/record_batch.h"
#include "transport/transport.h"
#include "transport/zap_handler.h"
#include "transport/zmq_handles.h"

namespace tug {

// 'T', then the PeerId, little-endian. (Ids that begin with 0 are reserved by ZeroMQ.)
inline constexpr size_t kRoutingIdBytes = 5;
std::array<std::byte, kRoutingIdBytes> RoutingId(PeerId peer);
// Peer of a routing id; nothing if the id does not have that form.
std::optional<PeerId> PeerOfRoutingId(std::span<const std::byte> id);

// Not thread-safe, except Wake. Destruction waits up to kLingerMs for queued messages to leave.
class ZmqTransport final : public Transport {
 public:
  struct Options {
    PeerId self = 0;
    // IPv4 address or interface to listen on; empty = do not listen.
    std::string bind_host;
    uint16_t bind_port = 0;  // 0 = any free port
    // Threads of libzmq that move bytes to and from the kernel.
    int io_threads = 1;
    // Largest payload, in bytes: a larger one ends its connection when it is announced. At most
    // kMaxPayloadBytes.
    uint64_t max_message_bytes = kMaxPayloadBytes;
    // Limit of ZeroMQ messages queued to one peer; above it Send returns RESOURCE_EXHAUSTED.
    int send_high_water = 1024;
    // Limit of ZeroMQ messages queued from one peer; above it its connection is not read.
    int receive_high_water = 256;
    // Whether to fill in payload_xxh3. Received checksums are always checked.
    bool checksum = true;
    // Descriptor that ends Poll when it is readable; Poll does not read it. -1 = none.
    int extra_fd = -1;
    // The job's keys: only peers that have them are accepted and connected to. CURVE encrypts
    // everything.
    JobKeys keys;
    // With keys: limit of connections that have not yet shown keys, and their time to do so.
    size_t max_waiting = 256;
    absl::Duration handshake = absl::Seconds(5);
    // Interval of heartbeats on our connections. A connection that does not reply within
    // SilenceLimit is replaced.
    absl::Duration heartbeat = absl::Seconds(5);
    // Added by SilenceLimit to the transfer time of the largest frame.
    absl::Duration patience = absl::Seconds(15);
  };
  static constexpr int kLingerMs = 500;
  // Slowest link, in bytes per second, on which SilenceLimit allows for the largest frame.
  static constexpr uint64_t kSlowestLink = 1'250'000;

  // Errors: INVALID_ARGUMENT (address), ALREADY_EXISTS (port in use), RESOURCE_EXHAUSTED (file
  // descriptors).
  static absl::StatusOr<std::unique_ptr<ZmqTransport>> Create(const Options& options);
  ~ZmqTransport() override;

  // "tcp://HOST:PORT" with the host as given and the actual port; empty if not listening. Peers
  // cannot connect to a wildcard: replace 0.0.0.0 by an address they can reach.
  std::string endpoint() const { return endpoint_; }

  absl::Status Connect(PeerId peer, const std::string& endpoint) override;
  absl::Status Send(Outgoing message) override;
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) override;
  void Wake() override;
  // Sends the messages that wait for the next Poll.
  void Flush();
  TransportCounters counters() const override;

 private:
  // First entries of poll_items_: wake_fd_, options_.extra_fd (poll skips a negative one).
  static constexpr size_t kFixedItems = 2;

  // A socket that receives messages: the ROUTER (no peer) or the DEALER of one peer.
  struct Link {
    ZmqSocket socket;
    std::optional<PeerId> peer;
    std::string endpoint;
    // No message was available, and none was sent since. Only then does the socket's file
    // descriptor announce new messages (libzmq consumes announcements while it sends).
    bool drained = false;
  };
  // How messages to a peer are sent.
  struct Route {
    Route(PeerId to, size_t link, bool routed, std::shared_ptr<BlockPool> pool)
        : to(to), link(link), routed(routed), reachable(!routed), batch(std::move(pool)) {}
    PeerId to;
    size_t link;          // index into links_
    bool routed;          // over the ROUTER
    bool reachable;       // the last message was sent: small ones may be batched
    bool queued = false;  // in queued_
    RecordBatch batch;
  };

  ZmqTransport(const Options& options, ZmqContext context, int wake_fd);
  absl::StatusOr<ZmqSocket> NewSocket(int type);
  uint64_t MaxFrameBytes() const;
  // Longer than a heartbeat reply can be delayed behind a frame.
  absl::Duration SilenceLimit() const;
  absl::Status Listen();
  void AddLink(Link link);
  Route* FindRoute(PeerId to);
  absl::Status SendNow(Route& route, const Outgoing& message);
  absl::Status FlushRoute(Route& route);
  absl::Status WriteMessage(Route& route, const Lease& payloads);
  absl::Status WriteFrames(Route& route, const Lease& payloads);
  void MarkReadable(absl::Duration timeout, bool take_wake);
  bool ReceiveFromAll(const std::function<void(Message)>& handler);
  int ReceiveOne(size_t link, const std::function<void(Message)>& handler);
  int Deliver(PeerId from, ZmqFrame headers, ZmqFrame payloads,
              const std::function<void(Message)>& handler);
  Lease LeaseOf(ZmqFrame payloads);

  const Options options_;
  const std::shared_ptr<BlockPool> pool_;  // shared with leases of received payloads
  ZmqContext context_;                     // outlives the sockets
  std::unique_ptr<ZapHandler> zap_;        // with keys, if it listens; ends after the context
  const int wake_fd_;                      // readable after Wake
  std::string endpoint_;
  std::vector<Link> links_;
  std::optional<size_t> router_;  // index into links_
  std::unordered_map<PeerId, Route> routes_;
  std::vector<Route*> queued_;      // routes with a non-empty batch
  std::vector<pollfd> poll_items_;  // kFixedItems, then links_
  std::vector<size_t> ready_;       // scratch of Poll
  size_t first_turn_ = 0;           // link that the next Poll begins with
  bool woken_ = false;              // scratch of Poll
  Admission admission_;
  TransportCounters counters_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_ZMQ_TRANSPORT_H_
