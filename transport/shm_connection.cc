// SPDX-License-Identifier: Apache-2.0
#include "transport/shm_connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/net/same_secret.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr size_t kMaxFds = 2;

absl::Status Violation(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("a peer on this host ", what));
}

absl::Status SocketError(const char* doing) {
  return absl::UnavailableError(
      absl::StrCat(doing, " a peer on this host: ", std::strerror(errno)));
}

void Ring(int doorbell) {
  const uint64_t one = 1;
  while (write(doorbell, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

}  // namespace

// Releases a slot when the last copy of a received message's lease is destroyed.
struct ShmConnection::Loan {
  Loan(std::shared_ptr<Inbox> from, std::shared_ptr<const SharedRegion> lies_in, uint32_t in_slot)
      : inbox(std::move(from)), region(std::move(lies_in)), slot(in_slot) {}
  ~Loan() {
    if (inbox->queue->Release(slot)) Ring(inbox->peer_doorbell.get());
  }
  const std::shared_ptr<Inbox> inbox;
  const std::shared_ptr<const SharedRegion> region;
  const uint32_t slot;
};

absl::StatusOr<std::unique_ptr<ShmConnection>> ShmConnection::Create(
    FileDescriptor socket, PeerId self, std::optional<PeerId> peer, int own_doorbell,
    std::shared_ptr<SharedArena> arena, const ShmCredentials& credentials) {
  ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> queue,
                   SharedRegion::Create(sizeof(ShmQueueMemory), SharedRegion::Sharing::kReadWrite));
  std::unique_ptr<ShmConnection> connection(new ShmConnection(std::move(socket), self, peer,
                                                              own_doorbell, std::move(arena),
                                                              std::move(queue), credentials));
  if (peer.has_value()) RETURN_IF_ERROR(connection->SendHello());
  return connection;
}

KeyProof ShmCredentials::Proof(PeerId from, PeerId to) const {
  return ProofOf(keys, absl::StrCat("shared memory ", job, " ", from, " ", to));
}

std::string ShmCredentials::NameOf(PeerId listener) const {
  const std::string plain = absl::StrFormat("tugboat/%016x/%08x", job, listener);
  if (keys.none()) return plain;
  const KeyProof code = ProofOf(keys, plain);
  return absl::StrCat("tugboat/",
                      absl::BytesToHexString({reinterpret_cast<const char*>(code.data()), 16}));
}

// ---- the socket ----

absl::Status ShmConnection::SendHello() {
  const int fds[] = {queue_->fd(), own_doorbell_};
  RETURN_IF_ERROR(SendPacket({.kind = ShmPacket::Kind::kHello,
                              .sender = self_,
                              .proof = credentials_.Proof(self_, *peer_)},
                             fds));
  queue_->CloseFd();
  queue_.reset();
  return absl::OkStatus();
}

absl::Status ShmConnection::SendPacket(const ShmPacket& packet, std::span<const int> fds) {
  iovec data{const_cast<ShmPacket*>(&packet), sizeof(packet)};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  while (sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) return SocketError("sharing memory with");
  }
  return absl::OkStatus();
}

absl::Status ShmConnection::ReadPackets() {
  if (failure_.ok()) failure_ = ReadAllPackets();
  return failure_;
}

absl::Status ShmConnection::ReadAllPackets() {
  while (true) {
    ShmPacket packet;
    iovec data{&packet, sizeof(packet)};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return absl::OkStatus();
    if (size < 0) return SocketError("reading from");
    if (size == 0) return absl::UnavailableError("a peer process on this host exited");
    std::vector<FileDescriptor> fds;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        fds.emplace_back(fd);
      }
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
      return absl::ResourceExhaustedError(
          "cannot receive the shared memory of a peer on this host: its packet has too many files, "
          "or this process has too many open; raise the limit of open files (ulimit -n)");
    }
    const bool whole = size == sizeof(packet) && packet.magic == ShmPacket::kMagic &&
                       (message.msg_flags & MSG_TRUNC) == 0;
    if (!whole)
      return Violation("uses a different protocol: run the same version of tug everywhere");
    RETURN_IF_ERROR(OnPacket(packet, std::move(fds)));
  }
}

absl::Status ShmConnection::OnPacket(const ShmPacket& packet, std::vector<FileDescriptor> fds) {
  if (packet.kind == ShmPacket::Kind::kHello) return OnHello(packet, std::move(fds));
  if (packet.kind != ShmPacket::Kind::kRegion || packet.region != peer_regions_.size() ||
      fds.size() != 1) {
    return Violation("sent a shared memory region out of sequence");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region,
                   SharedRegion::Map(std::move(fds[0]), SharedRegion::Sharing::kReadOnly));
  peer_regions_.push_back(std::move(region));
  return absl::OkStatus();
}

absl::Status ShmConnection::OnHello(const ShmPacket& packet, std::vector<FileDescriptor> fds) {
  const bool expected = !peer_.has_value() || *peer_ == packet.sender;
  if (inbox_ != nullptr || !expected || fds.size() != 2)
    return Violation("sent an invalid hello message");
  const KeyProof proof = credentials_.Proof(packet.sender, self_);
  if (!SameSecret({reinterpret_cast<const char*>(packet.proof.data()), packet.proof.size()},
                  {reinterpret_cast<const char*>(proof.data()), proof.size()})) {
    return Violation("does not have the keys of this job: connection refused");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> queue,
                   SharedRegion::Map(std::move(fds[0]), SharedRegion::Sharing::kReadWrite));
  if (queue->bytes().size() < sizeof(ShmQueueMemory))
    return Violation("sent a queue that is too small");
  peer_ = packet.sender;
  inbox_ = std::make_shared<Inbox>(
      Inbox{std::make_shared<ShmReceiver>(std::move(queue)), std::move(fds[1])});
  return queue_ == nullptr ? absl::OkStatus() : SendHello();
}

// ---- sending ----

absl::Status ShmConnection::ShareRegionsUpTo(uint32_t region) {
  for (; shared_regions_ <= region; ++shared_regions_) {
    const int fd = arena_->region(shared_regions_)->fd();
    RETURN_IF_ERROR(SendPacket(
        {.kind = ShmPacket::Kind::kRegion, .sender = self_, .region = shared_regions_}, {&fd, 1}));
  }
  return absl::OkStatus();
}

// Location where the peer can read the payload: in place if it lies in the arena, else a copy, with
// the slot if it is small, otherwise in the arena, which replaces the payload.
absl::StatusOr<ShmPlace> ShmConnection::PlaceOf(Lease& payload) {
  const size_t bytes = payload.size_bytes();
  if (bytes == 0) return ShmPlace{.region = ShmPlace::kWithSlot};
  std::optional<SharedArena::Place> at = arena_->Find(payload.bytes());
  if (!at.has_value()) {
    if (bytes <= kShmCopiedBytes) return ShmPlace{.region = ShmPlace::kWithSlot};
    ASSIGN_OR_RETURN(const std::shared_ptr<AlignedBuffer> copy, arena_->NewBuffer(bytes));
    std::memcpy(copy->data(), payload.bytes().data(), bytes);
    payload = Lease(copy, std::span<const std::byte>(copy->data(), bytes));
    at = arena_->Find(payload.bytes());
  }
  RETURN_IF_ERROR(ShareRegionsUpTo(at->region));
  return ShmPlace{at->region, at->offset, bytes};
}

absl::Status ShmConnection::Send(std::span<const std::byte, kHeaderBytes> header, Lease payload) {
  if (waiting_.size() >= kMaxWaiting) {
    return absl::ResourceExhaustedError("the queue to a peer on this host is full");
  }
  Waiting message;
  std::memcpy(message.header.data(), header.data(), header.size());
  const absl::StatusOr<ShmPlace> place = PlaceOf(payload);
  if (!place.ok()) {
    if (absl::IsResourceExhausted(place.status())) WarnOfMemoryShortage(place.status());
    return place.status();
  }
  message.place = *place;
  message.payload = std::move(payload);
  if (!waiting_.empty() || !TryPush(message)) {
    waiting_.push_back(std::move(message));
    outbox_.WaitForRelease();
  }
  RingIfAsleep();
  return absl::OkStatus();
}

// The sender retries, since peers return buffers. If none does, it retries forever.
void ShmConnection::WarnOfMemoryShortage(const absl::Status& status) {
  if (std::exchange(said_that_memory_is_short_, true)) return;
  LogWarning(absl::StrCat("a message to ", peer_.has_value() ? PeerName(*peer_) : "a peer",
                          " waits for memory: ", status.message()));
}

bool ShmConnection::TryPush(Waiting& message) {
  if (outbox_.full()) return false;  // the message keeps its lease
  if (message.place.region == ShmPlace::kWithSlot) {
    return outbox_.PushCopy(message.header, message.payload.bytes());
  }
  return outbox_.Push(message.header, message.place, std::move(message.payload));
}

void ShmConnection::RingIfAsleep() {
  // A peer sends its hello before it reads ours: if its hello has not arrived, our hello will wake
  // it. Otherwise it may be asleep by now. failure() reports a bad packet.
  if (inbox_ == nullptr) ReadPackets().IgnoreError();
  if (inbox_ != nullptr && outbox_.TakeReceiverSleeps()) Ring(inbox_->peer_doorbell.get());
}

void ShmConnection::Advance() {
  outbox_.Collect();
  if (waiting_.empty()) return;
  while (!waiting_.empty() && TryPush(waiting_.front())) waiting_.pop_front();
  if (!waiting_.empty()) outbox_.WaitForRelease();
  RingIfAsleep();
}

// ---- receiving ----

std::optional<absl::StatusOr<ShmConnection::Received>> ShmConnection::Receive() {
  if (inbox_ == nullptr) return std::nullopt;
  std::optional<ShmReceiver::Taken> taken = inbox_->queue->Take();
  if (!taken.has_value()) return std::nullopt;
  if (taken->ring) Ring(inbox_->peer_doorbell.get());
  // Regain what the peer released before it sent this message, e.g. the buffer of a committed push,
  // before the message is processed.
  outbox_.Collect();
  const ShmPlace& place = taken->content.payload;
  if (!taken->is_leased()) {
    if (taken->is_too_long()) return Violation("sent a payload larger than its slot");
    return Received{taken->content.header, std::move(taken->payload), Home::kReceiver};
  }
  if (place.region >= peer_regions_.size()) ReadPackets().IgnoreError();  // see failure()
  const bool lies_somewhere =
      place.region < peer_regions_.size() &&
      place.offset <= peer_regions_[place.region]->bytes().size() &&
      place.bytes <= peer_regions_[place.region]->bytes().size() - place.offset;
  if (!lies_somewhere) {
    inbox_->queue->Release(taken->slot);
    return Violation("sent a payload outside its shared memory");
  }
  const std::shared_ptr<SharedRegion>& region = peer_regions_[place.region];
  const std::span<const std::byte> bytes = region->bytes().subspan(place.offset, place.bytes);
  return Received{taken->content.header,
                  Lease(std::allocate_shared<Loan>(PoolAllocator<Loan>(inbox_->loans), inbox_,
                                                   region, taken->slot),
                        bytes)};
}

bool ShmConnection::HasWork() const {
  if (inbox_ != nullptr && inbox_->queue->HasMessage()) return true;
  return !waiting_.empty() && outbox_.HasReleased();
}

void ShmConnection::SetSleeping(bool sleeping) {
  if (inbox_ != nullptr) inbox_->queue->SetSleeping(sleeping);
}

}  // namespace tug
