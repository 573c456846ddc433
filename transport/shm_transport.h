// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_SHM_TRANSPORT_H_
#define TUG_TRANSPORT_SHM_TRANSPORT_H_

// Transport between processes of one user on one host, through shared memory. A payload in memory
// from NewBuffer is never copied: the receiver reads it in place (Home::kSender).
//
//  - An endpoint listens at an abstract Unix socket named after job and peer, so peers need no
//    address to find each other, and find each other only inside one network namespace. With keys
//    the name is a code that only members can compute.
//  - Only processes of the same user are accepted; in a job with keys, only those that have them.
//    Accepted peers trust each other with their payloads (a sender could change one that is being
//    read), not with their own memory.
//  - Each endpoint waits on an eventfd, which peers ring when they see it asleep, after a short
//    spin if there are spare cores. An eventfd rather than a futex, so that one wait covers TCP
//    too.
//  - Payloads are not checksummed: they do not cross a network.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "base/memory/shared_arena.h"
#include "base/time_source.h"
#include "security/job_keys.h"
#include "transport/admission.h"
#include "transport/shm_connection.h"
#include "transport/transport.h"

namespace tug {

// Used by one thread at a time, except Wake, NewBuffer and SharedBytes.
class ShmTransport final : public Transport {
 public:
  struct Options {
    PeerId self = 0;
    uint64_t job = 0;
    bool listen = false;
    uint64_t max_message_bytes = kMaxPayloadBytes;
    // How long Poll spins before it sleeps, if a message arrived within the last `spin`.
    absl::Duration spin = absl::ZeroDuration();
    // The job's keys: a process that cannot prove it has them is refused as a peer.
    JobKeys keys;
  };

  // Errors: ALREADY_EXISTS (the socket name is taken), RESOURCE_EXHAUSTED (file descriptors).
  static absl::StatusOr<std::unique_ptr<ShmTransport>> Create(const Options& options);

  // NOT_FOUND: no such peer in this network namespace, or it belongs to another user. `endpoint` is
  // ignored.
  absl::Status Connect(PeerId peer, const std::string& endpoint) override;
  absl::Status Send(Outgoing message) override;
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) override;
  void Wake() override;
  TransportCounters counters() const override;
  bool SharesMemoryWith(PeerId peer) const override { return FindConnection(peer) != nullptr; }
  std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes) override;
  uint64_t SharedBytes() const override { return arena_->touched_bytes(); }

  // Poll with another way to wait: `wait` returns at the latest after the timeout, and when
  // wait_fd() is readable. It is also called with a zero timeout now and then while messages keep
  // arriving.
  void PollWith(absl::Duration timeout, const std::function<void(Message)>& handler,
                const std::function<void(absl::Duration)>& wait);
  int wait_fd() const { return epoll_.get(); }

 private:
  ShmTransport(const Options& options, FileDescriptor epoll, FileDescriptor doorbell);

  absl::Status Listen();
  void Watch(int fd);
  ShmConnection* FindConnection(PeerId peer) const;
  bool HasWork() const;
  // Handles available messages; returns their number.
  int Drain(const std::function<void(Message)>& handler);
  int DrainOne(ShmConnection& connection, int limit, const std::function<void(Message)>& handler);
  void RemoveFailed();
  bool SpinForWork();
  void SetSleeping(bool sleeping);
  // Handles epoll events: doorbell, new connections, packets, closed sockets.
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
  absl::Time next_events_ = absl::InfinitePast();  // next check while messages keep arriving
};

}  // namespace tug

#endif  // TUG_TRANSPORT_SHM_TRANSPORT_H_
