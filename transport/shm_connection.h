#ifndef TUG_TRANSPORT_SHM_CONNECTION_H_
#define TUG_TRANSPORT_SHM_CONNECTION_H_

// One peer on the same host: a Unix socket over which memory and eventfds are handed over, and a
// queue each way (shm_queue.h). Payloads lie in the sender's arena, which the receiver maps
// read-only, region by region, when it is first sent something that lies there; those that lie
// elsewhere are copied, small ones into the queue.
//
// On the socket (SOCK_SEQPACKET), each packet a ShmPacket with file descriptors:
//   hello   { the sender's queue, its eventfd }   first packet of each side: of who has connected,
//                                                 then, if that has the job's keys, of the other
//   region  { a region of the sender's arena }    before the first message that lies in it
// The end of the socket is the end of the peer. Nothing has a name, but for the listener's abstract
// one, so whatever way a process ends, nothing of it is left.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/block_pool.h"
#include "base/file_descriptor.h"
#include "base/shared_arena.h"
#include "security/job_keys.h"
#include "transport/shm_queue.h"
#include "transport/transport.h"

namespace tug {

struct ShmPacket {
  enum class Kind : uint32_t { kHello = 1, kRegion = 2 };
  static constexpr uint32_t kMagic = 0x334D4853;  // "SHM3": the version of queue and packets
  uint32_t magic = kMagic;
  Kind kind = Kind::kHello;
  PeerId sender = 0;
  uint32_t region = 0;  // of kRegion: its index
  KeyProof proof{};     // of kHello: ShmCredentials::Proof
};

// By which two peers of one job know each other.
struct ShmCredentials {
  JobKeys keys;
  uint64_t job = 0;
  // That `from` has the keys, for `to` only.
  KeyProof Proof(PeerId from, PeerId to) const;
  // Of the abstract socket that `listener` listens at. With keys, only their owners can know it
  // before it is bound, so that nobody else can bind it first.
  std::string NameOf(PeerId listener) const;
};

// Not thread-safe; leases that it has handed out may be dropped on any thread, and later than it.
class ShmConnection {
 public:
  // Messages that wait for a slot before Send refuses more.
  static constexpr size_t kMaxWaiting = 65536;

  // Takes over a connected socket. `peer`: whom we have connected to, and say hello to; none for an
  // accepted socket, whose peer first says who it is. `credentials` and the doorbell outlive the
  // connection.
  static absl::StatusOr<std::unique_ptr<ShmConnection>> Create(FileDescriptor socket, PeerId self,
                                                               std::optional<PeerId> peer,
                                                               int own_doorbell,
                                                               std::shared_ptr<SharedArena> arena,
                                                               const ShmCredentials& credentials);

  std::optional<PeerId> peer() const { return peer_; }
  int socket() const { return socket_.get(); }

  // Messages leave in this order. `header` is sealed (admission.h). RESOURCE_EXHAUSTED: see
  // kMaxWaiting; also no memory to copy the payload into, or to share.
  absl::Status Send(std::span<const std::byte, kHeaderBytes> header, Lease payload);

  struct Received {
    std::array<std::byte, kHeaderBytes> header;
    Lease payload;
    Home home = Home::kSender;
  };
  // The next message, not yet checked; nothing if there is none. kInvalidArgument: one that lies
  // nowhere; it is gone.
  std::optional<absl::StatusOr<Received>> Receive();

  // Sends what waited for slots, once the peer has released some. To be called now and then.
  void Advance();
  // Whether Receive or Advance has something to do.
  bool HasWork() const;
  // While asleep, the peer rings our doorbell when there is work.
  void SetSleeping(bool sleeping);

  // Reads the socket's packets. Not OK, from then on: the peer is gone, or does not keep to the
  // protocol, or there are no files left to take what it shares. What it has sent can still be
  // received; nothing more can be sent.
  absl::Status ReadPackets();
  const absl::Status& failure() const { return failure_; }

 private:
  struct Waiting {
    std::array<std::byte, kHeaderBytes> header;
    ShmPlace place{.region = ShmPlace::kWithSlot};
    Lease payload;
  };
  // What leases of received messages keep alive: the way back.
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

  absl::Status SayHello();
  absl::Status ReadAllPackets();
  absl::Status SendPacket(const ShmPacket& packet, std::span<const int> fds);
  absl::Status OnPacket(const ShmPacket& packet, std::vector<FileDescriptor> fds);
  absl::Status OnHello(const ShmPacket& packet, std::vector<FileDescriptor> fds);
  absl::Status ShareRegionsUpTo(uint32_t region);
  absl::StatusOr<ShmPlace> PlaceOf(Lease& payload);
  bool TryPush(Waiting& message);
  void SayThatMemoryIsShort(const absl::Status& status);
  void RingIfAsleep();

  const FileDescriptor socket_;
  const PeerId self_;
  std::optional<PeerId> peer_;
  const int own_doorbell_;
  const ShmCredentials& credentials_;
  absl::Status failure_;
  bool said_that_memory_is_short_ = false;
  const std::shared_ptr<SharedArena> arena_;
  std::shared_ptr<SharedRegion> queue_;  // until our hello
  ShmSender outbox_;
  std::deque<Waiting> waiting_;
  uint32_t shared_regions_ = 0;   // of our arena: handed over so far
  std::shared_ptr<Inbox> inbox_;  // none before the peer's hello
  std::vector<std::shared_ptr<SharedRegion>> peer_regions_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_SHM_CONNECTION_H_
