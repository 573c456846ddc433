#ifndef TUG_TRANSPORT_ZMQ_TRANSPORT_H_
#define TUG_TRANSPORT_ZMQ_TRANSPORT_H_

// Transport over TCP by ZeroMQ.
//
//  - One bound ROUTER for the peers that connect to us, one DEALER for each peer we connect to. A
//    peer reached both ways is sent to over the DEALER.
//  - A ZeroMQ message is two frames: headers, then payloads (an empty frame where there are none).
//    Messages with small payloads wait for the next Poll and travel together (record_batch.h); a
//    larger one leaves at once, after those that wait.
//  - A DEALER's routing id is RoutingId(self), so that the ROUTER knows a peer across reconnects;
//    a second connection under the same id takes the place of the first.
//  - Larger payloads are sent from the leased memory. All are delivered in the memory they were
//    received into, shared by those that travelled together; only what arrives misaligned (some
//    below 8 KiB) is copied.
//  - In steady state our code allocates nothing per message: what must live until a lease ends is
//    in blocks of a pool.
//  - A DEALER sends heartbeats (ZMTP's PING). The ROUTER leaves a connection open, but unread, when
//    another takes its routing id; only the missing answers tell the DEALER to connect anew.
//  - A DEALER reconnects by itself and keeps what is queued for a peer that is away; the ROUTER
//    answers NOT_FOUND at once for a peer that is not connected.

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
#include "base/block_pool.h"
#include "security/job_keys.h"
#include "transport/admission.h"
#include "transport/record_batch.h"
#include "transport/transport.h"
#include "transport/zap_handler.h"
#include "transport/zmq_handles.h"

namespace tug {

// 'T', then the PeerId, little-endian. (Ids that begin with 0 are ZeroMQ's own.)
inline constexpr size_t kRoutingIdBytes = 5;
std::array<std::byte, kRoutingIdBytes> RoutingId(PeerId peer);
// The peer of a routing id; nothing if it is not of that form.
std::optional<PeerId> PeerOfRoutingId(std::span<const std::byte> id);

// Not thread-safe, except Wake. Destruction waits up to kLingerMs for what is still queued.
class ZmqTransport final : public Transport {
 public:
  struct Options {
    PeerId self = 0;
    // IPv4 address or interface to listen at; empty = do not listen.
    std::string bind_host;
    uint16_t bind_port = 0;  // 0 = any free port
    // Threads of libzmq that move bytes to and from the kernel.
    int io_threads = 1;
    // Largest payload, in bytes: one that is announced larger ends its connection. At most
    // kMaxPayloadBytes.
    uint64_t max_message_bytes = kMaxPayloadBytes;
    // ZeroMQ messages queued to one peer before Send answers RESOURCE_EXHAUSTED.
    int send_high_water = 1024;
    // ZeroMQ messages queued from one peer before its connection is no longer read.
    int receive_high_water = 256;
    // Fill in payload_xxh3. What comes with a checksum is always checked.
    bool checksum = true;
    // Poll also ends when this is readable, and does not read it; -1 = none.
    int extra_fd = -1;
    // Of the job: only who has them is let in, and connected to. With CURVE all is encrypted.
    JobKeys keys;
    // Of others, with keys: how many may at one time not yet have shown theirs, and for how long.
    size_t most_waiting = 256;
    absl::Duration handshake = absl::Seconds(5);
    // How often a connection of ours is asked whether the other side still reads it. One that does
    // not answer for SilenceLimit is given up for a new one.
    absl::Duration heartbeat = absl::Seconds(5);
    // What SilenceLimit adds to the time that the largest frame takes.
    absl::Duration patience = absl::Seconds(15);
  };
  static constexpr int kLingerMs = 500;
  // The slowest link, in bytes a second, on which the largest frame is not taken for silence.
  static constexpr uint64_t kSlowestLink = 1'250'000;

  // Errors: INVALID_ARGUMENT (address), ALREADY_EXISTS (port in use), RESOURCE_EXHAUSTED (files).
  static absl::StatusOr<std::unique_ptr<ZmqTransport>> Create(const Options& options);
  ~ZmqTransport() override;

  // "tcp://HOST:PORT" with the host as given and the real port; empty if not listening. A peer
  // cannot connect to a wildcard: put the address it knows in place of 0.0.0.0.
  std::string endpoint() const { return endpoint_; }

  absl::Status Connect(PeerId peer, const std::string& endpoint) override;
  absl::Status Send(Outgoing message) override;
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) override;
  void Wake() override;
  // Puts on its way what waits for the next Poll.
  void Flush();
  TransportCounters counters() const override;

 private:
  // Of poll_items_: wake_fd_, options_.extra_fd (poll skips a negative one).
  static constexpr size_t kFixedItems = 2;

  // A socket that messages come from: the ROUTER (no peer) or the DEALER of one peer.
  struct Link {
    ZmqSocket socket;
    std::optional<PeerId> peer;
    std::string endpoint;
    // Nothing was at hand, and nothing was sent since: only then does the socket's file descriptor
    // announce what comes (libzmq takes announcements in while it sends).
    bool drained = false;
  };
  // How a peer is sent to.
  struct Route {
    Route(PeerId to, size_t link, bool routed, std::shared_ptr<BlockPool> pool)
        : to(to), link(link), routed(routed), reachable(!routed), batch(std::move(pool)) {}
    PeerId to;
    size_t link;          // index into links_
    bool routed;          // over the ROUTER
    bool reachable;       // the last message went out: small ones may wait
    bool queued = false;  // in queued_
    RecordBatch batch;
  };

  ZmqTransport(const Options& options, ZmqContext context, int wake_fd);
  absl::StatusOr<ZmqSocket> NewSocket(int type);
  uint64_t MaxFrameBytes() const;
  // Longer than an answer to a heartbeat can wait behind a frame.
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
  std::vector<Route*> queued_;      // whose batch is not empty
  std::vector<pollfd> poll_items_;  // kFixedItems, then links_
  std::vector<size_t> ready_;       // scratch of Poll
  size_t first_turn_ = 0;           // link that Poll begins with
  bool woken_ = false;              // scratch of Poll
  Admission admission_;
  TransportCounters counters_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_ZMQ_TRANSPORT_H_
