#ifndef TUG_TRANSPORT_SHM_TRANSPORT_H_
#define TUG_TRANSPORT_SHM_TRANSPORT_H_

// Transport between processes of one user on one host, through shared memory: a payload that lies
// in memory from NewBuffer is never copied; the receiver reads it where it is (Home::kSender).
//
//  - An endpoint listens at an abstract Unix socket named after job and peer, so peers need no
//    address to find one another, and do so only inside one network namespace. With keys the name
//    is a code that only members can make.
//  - Only processes of the same user are let in, of a job with keys only those that have them;
//    beyond that, peers trust one another with their payloads (a sender could change one that is
//    being read), not with their own memory.
//  - Waiting is an eventfd for each endpoint, rung by peers that see it sleep, after a short spin
//    where there are cores to spare. An eventfd rather than a futex: one wait covers TCP as well.
//  - Payloads are not checksummed: they cross no wire.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "base/shared_arena.h"
#include "base/time_source.h"
#include "security/job_keys.h"
#include "transport/admission.h"
#include "transport/shm_connection.h"
#include "transport/transport.h"

namespace tug {

// Used from one thread at a time, but for Wake, NewBuffer and SharedBytes.
class ShmTransport final : public Transport {
 public:
  struct Options {
    PeerId self = 0;
    uint64_t job = 0;
    bool listen = false;
    uint64_t max_message_bytes = kMaxPayloadBytes;
    // How long Poll looks for messages before it sleeps, if one came within as long before.
    absl::Duration spin = absl::ZeroDuration();
    // Of the job: who cannot show that it has them is not taken for a peer.
    JobKeys keys;
  };

  // Errors: ALREADY_EXISTS (the name to listen by is taken), RESOURCE_EXHAUSTED (files).
  static absl::StatusOr<std::unique_ptr<ShmTransport>> Create(const Options& options);

  // NOT_FOUND: no such peer in this network namespace, or another user's. `endpoint` is not read.
  absl::Status Connect(PeerId peer, const std::string& endpoint) override;
  absl::Status Send(Outgoing message) override;
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) override;
  void Wake() override;
  TransportCounters counters() const override;
  bool SharesMemoryWith(PeerId peer) const override { return FindConnection(peer) != nullptr; }
  std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes) override;
  uint64_t SharedBytes() const override { return arena_->touched_bytes(); }

  // Poll, with another way to wait: `wait` returns after the timeout at the latest, and when
  // wait_fd() is readable. Also called, with no timeout, now and then while messages keep coming.
  void PollWith(absl::Duration timeout, const std::function<void(Message)>& handler,
                const std::function<void(absl::Duration)>& wait);
  int wait_fd() const { return epoll_.get(); }

 private:
  ShmTransport(const Options& options, FileDescriptor epoll, FileDescriptor doorbell);

  absl::Status Listen();
  void Watch(int fd);
  ShmConnection* FindConnection(PeerId peer) const;
  bool HasWork() const;
  // Handles messages at hand; returns how many.
  int Drain(const std::function<void(Message)>& handler);
  int DrainOne(ShmConnection& connection, int limit, const std::function<void(Message)>& handler);
  void RemoveFailed();
  bool SpinForWork();
  void SetSleeping(bool sleeping);
  // Doorbell, new peers, packets, ends.
  void HandleEvents();
  void Accept();
  void OnSocket(int fd);

  const Options options_;
  const ShmCredentials credentials_;
  const RealTime time_;
  const FileDescriptor epoll_;
  const FileDescriptor doorbell_;
  FileDescriptor listener_;
  const std::shared_ptr<SharedArena> arena_;
  std::vector<std::unique_ptr<ShmConnection>> connections_;
  Admission admission_;
  TransportCounters counters_;
  absl::Time last_message_ = absl::InfinitePast();
  absl::Time next_events_ = absl::InfinitePast();  // when to look for them while messages come
};

}  // namespace tug

#endif  // TUG_TRANSPORT_SHM_TRANSPORT_H_
