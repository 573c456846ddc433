#ifndef TUG_TRANSPORT_IMPAIRED_TRANSPORT_H_
#define TUG_TRANSPORT_IMPAIRED_TRANSPORT_H_

// A worse network than there is, for experiments: another transport whose messages are held back,
// slowed down or lost where they are sent (ImpairConfig, proto/job.proto). What is received is left
// alone: the peer impairs what it sends.
//
// The n-th message:
// 1. is lost with probability `loss`;
// 2. leaves the link when its header and payload have passed it, at `rate_mbit`, after the message
//    before it; a link that was idle has saved up kBurst;
// 3. is due `delay_ms`, and a uniform part of `jitter_ms`, after that, but not before the message
//    before it: order is kept.
// Loss and jitter are a function of (seed, self, n), so a run repeats.
//
// Messages that are due are sent from within Send and Poll; Poll wakes up for them.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/time_source.h"
#include "proto/job.pb.h"
#include "transport/transport.h"

namespace tug {

// Not thread-safe, except Wake, NewBuffer and SharedBytes. Send answers OK for a message that
// waits, whatever becomes of it: what the transport below refuses when it is due is in
// `counters().lost`, as is what was lost on purpose. Messages that wait when it is destroyed are
// lost, and their leases released.
class ImpairedTransport final : public Transport {
 public:
  // Bytes that may pass at once after an idle time: one full packet of a loopback device.
  static constexpr int64_t kBurstBytes = 64 << 10;

  // `time` outlives the transport.
  ImpairedTransport(std::unique_ptr<Transport> transport, const ImpairConfig& config, PeerId self,
                    uint64_t seed, const TimeSource& time);
  // By the real time.
  ImpairedTransport(std::unique_ptr<Transport> transport, const ImpairConfig& config, PeerId self,
                    uint64_t seed);

  absl::Status Connect(PeerId peer, const std::string& endpoint) override;
  absl::Status Send(Outgoing message) override;
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) override;
  void Wake() override { transport_->Wake(); }
  TransportCounters counters() const override;
  bool SharesMemoryWith(PeerId peer) const override { return transport_->SharesMemoryWith(peer); }
  std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes) override {
    return transport_->NewBuffer(size_bytes);
  }
  uint64_t SharedBytes() const override { return transport_->SharedBytes(); }

  // Messages that are not due yet.
  size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    absl::Time due;
    Outgoing message;
  };

  absl::Time LeavesLink(size_t size_bytes, absl::Time now);
  void SendDue();

  const std::unique_ptr<Transport> transport_;
  const absl::Duration delay_;
  const absl::Duration jitter_;
  const double loss_;
  const double seconds_per_byte_;  // 0 = no bound
  const PeerId self_;
  const uint64_t seed_;
  const std::unique_ptr<const TimeSource> owned_time_;  // where none was given
  const TimeSource& time_;
  uint64_t next_message_ = 0;
  absl::Time link_free_ = absl::InfinitePast();  // when the link has passed what was sent
  absl::Time last_due_ = absl::InfinitePast();
  std::deque<Waiting> waiting_;  // by due time
  uint64_t lost_ = 0;
};

bool IsImpaired(const ImpairConfig& config);

// `transport` behind `config`, or as it is where that impairs nothing. By the real time.
std::unique_ptr<Transport> Impair(std::unique_ptr<Transport> transport, const ImpairConfig& config,
                                  PeerId self, uint64_t seed);

}  // namespace tug

#endif  // TUG_TRANSPORT_IMPAIRED_TRANSPORT_H_
