// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_SHM_CONNECTION_H_
#define TUG_TRANSPORT_SHM_CONNECTION_H_

// Connection to one peer on the same host: a Unix socket that passes memory and eventfds, and one
// queue per direction (shm_queue.h). Payloads in the sender's arena stay in place; the receiver
// maps that arena read-only, region by region, when the first message of a region is sent. Other
// payloads are copied, small ones into the queue.
//
// Each packet on the socket (SOCK_SEQPACKET) is a ShmPacket with file descriptors:
//   hello   { the sender's queue, its eventfd }   first packet of each side: the connecting side
//                                                 first; the other side if the proof matches
//   region  { a region of the sender's arena }    before the first message that lies in it
// A closed socket means that the peer is gone. Only the listener's abstract socket has a name, so a
// process leaves nothing behind however it ends.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/memory/block_pool.h"
#include "base/memory/shared_arena.h"
#include "security/job_keys.h"
#include "transport/shm_queue.h"
#include "transport/transport.h"

namespace tug {

struct ShmPacket {
  enum class Kind : uint32_t { kHello = 1, kRegion = 2 };
  static constexpr uint32_t kMagic = 0x334D4853;  // "SHM3": version of queue and packets
  uint32_t magic = kMagic;
  Kind kind = Kind::kHello;
  PeerId sender = 0;
  uint32_t region = 0;  // kRegion only: its index
  KeyProof proof{};     // kHello only: ShmCredentials::Proof
};

// Credentials by which two peers of one job authenticate each other.
struct ShmCredentials {
  JobKeys keys;
  uint64_t job = 0;
  // Proof that `from` has the keys; valid for `to` only.
  KeyProof Proof(PeerId from, PeerId to) const;
  // Name of the abstract socket of `listener`. With keys, only members can compute it, so no other
  // process can bind it first.
  std::string NameOf(PeerId listener) const;
};

// Not thread-safe. Leases of received messages may be released on any thread, also after the
// connection is gone.
class ShmConnection {
 public:
  // Limit of queued messages (no free slot); above it Send returns RESOURCE_EXHAUSTED.
  static constexpr size_t kMaxWaiting = 65536;

  // Takes ownership of a connected socket. `peer`: the peer we connected to and send a hello to;
  // empty for an accepted socket, whose peer first identifies itself. `credentials` and the
  // doorbell outlive the connection.
  static absl::StatusOr<std::unique_ptr<ShmConnection>> Create(FileDescriptor socket, PeerId self,
                                                               std::optional<PeerId> peer,
                                                               int own_doorbell,
                                                               std::shared_ptr<SharedArena> arena,
                                                               const ShmCredentials& credentials);

  std::optional<PeerId> peer() const { return peer_; }
  int socket() const { return socket_.get(); }

  // Sends in call order. `header` is sealed (admission.h). RESOURCE_EXHAUSTED: kMaxWaiting messages
  // are queued, or there is no memory to copy or share the payload.
  absl::Status Send(std::span<const std::byte, kHeaderBytes> header, Lease payload);

  struct Received {
    std::array<std::byte, kHeaderBytes> header;
    Lease payload;
    Home home = Home::kSender;
  };
  // Returns the next message, not yet checked; nothing if there is none. INVALID_ARGUMENT: a
  // message whose place is invalid; it is discarded.
  std::optional<absl::StatusOr<Received>> Receive();

  // Sends queued messages into slots that the peer has released. Call regularly.
  void Advance();
  // Whether Receive or Advance have work to do.
  bool HasWork() const;
  // While sleeping, the peer rings our doorbell when there is work.
  void SetSleeping(bool sleeping);

  // Reads the socket's packets. An error is permanent: the peer is gone or violates the protocol,
  // or no file descriptors are left for the memory it shares. Messages it has already sent can
  // still be received; none can be sent.
  absl::Status ReadPackets();
  const absl::Status& failure() const { return failure_; }

 private:
  struct Waiting {
    std::array<std::byte, kHeaderBytes> header;
    ShmPlace place{.region = ShmPlace::kWithSlot};
    Lease payload;
  };
  // State kept alive by leases of received messages, to release their slots.
  struct Inbox {
    std::shared_ptr<ShmReceiver> queue;
    FileDescriptor peer_doorbell;
    std::shared_ptr<BlockPool> loans = std::make_shared<BlockPool>();
  };
  struct Loan;

  ShmConnection(FileDescriptor socket, PeerId self, std::optional<PeerId> peer, int own_doorbell,
                std::shared_ptr<SharedArena> arena, std::shared_ptr<SharedRegion> queue,
                const ShmCredentials& credentials)
      : socket_(std::move(socket)),
        self_(self),
        peer_(peer),
        own_doorbell_(own_doorbell),
        credentials_(credentials),
        arena_(std::move(arena)),
        queue_(queue),
        outbox_(std::move(queue)) {}

  absl::Status SendHello();
  absl::Status ReadAllPackets();
  absl::Status SendPacket(const ShmPacket& packet, std::span<const int> fds);
  absl::Status OnPacket(const ShmPacket& packet, std::vector<FileDescriptor> fds);
  absl::Status OnHello(const ShmPacket& packet, std::vector<FileDescriptor> fds);
  absl::Status ShareRegionsUpTo(uint32_t region);
  absl::StatusOr<ShmPlace> PlaceOf(Lease& payload);
  bool TryPush(Waiting& message);
  void WarnOfMemoryShortage(const absl::Status& status);
  void RingIfAsleep();

  const FileDescriptor socket_;
  const PeerId self_;
  std::optional<PeerId> peer_;
  const int own_doorbell_;
  const ShmCredentials& credentials_;
  absl::Status failure_;
  bool said_that_memory_is_short_ = false;
  const std::shared_ptr<SharedArena> arena_;
  std::shared_ptr<SharedRegion> queue_;  // reset once our hello is sent
  ShmSender outbox_;
  std::deque<Waiting> waiting_;
  uint32_t shared_regions_ = 0;   // regions of our arena already passed to the peer
  std::shared_ptr<Inbox> inbox_;  // null before the peer's hello
  std::vector<std::shared_ptr<SharedRegion>> peer_regions_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_SHM_CONNECTION_H_
