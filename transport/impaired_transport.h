// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_IMPAIRED_TRANSPORT_H_
#define TUG_TRANSPORT_IMPAIRED_TRANSPORT_H_

// Emulates a worse network, for experiments: wraps a transport and delays, slows down or loses the
// messages it sends (ImpairConfig, proto/job.proto). Received messages are unchanged: each peer
// impairs its own sends.
//
// The n-th message:
// 1. is lost with probability `loss`;
// 2. leaves the link once its header and payload have passed it at `rate_mbit`, after the previous
// message; an idle link saves up kBurstBytes;
// 3. is due `delay_ms`, plus a uniform part of `jitter_ms`, after that, but not before the previous
// message: order is kept.
// Loss and jitter are a function of (seed, self, n), so a run repeats.
//
// Send and Poll send the messages that are due; Poll wakes up for them.

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

// Not thread-safe, except Wake, NewBuffer and SharedBytes. Send returns OK for a delayed message,
// even if it fails later: `counters().lost` counts messages lost on purpose and messages that the
// wrapped transport refuses when they are due. Destruction drops delayed messages and releases
// their leases.
class ImpairedTransport final : public Transport {
 public:
  // Bytes that may pass at once after idle time: one full packet of a loopback device.
  static constexpr int64_t kBurstBytes = 64 << 10;

  // `time` outlives the transport; null: real time.
  ImpairedTransport(std::unique_ptr<Transport> transport, const ImpairConfig& config, PeerId self,
                    uint64_t seed, const TimeSource* time = nullptr);

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

  // Delayed messages that are not due yet.
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
  const double seconds_per_byte_;  // 0 = unlimited
  const PeerId self_;
  const uint64_t seed_;
  const std::unique_ptr<const TimeSource> owned_time_;  // null if the caller passed a TimeSource
  const TimeSource& time_;
  uint64_t next_message_ = 0;
  absl::Time link_free_ = absl::InfinitePast();  // when the link finishes the previous messages
  absl::Time last_due_ = absl::InfinitePast();
  std::deque<Waiting> waiting_;  // by due time
  uint64_t lost_ = 0;
};

bool IsImpaired(const ImpairConfig& config);

// Wraps `transport` as `config` says; returns it unchanged if `config` impairs nothing. Uses real
// time.
std::unique_ptr<Transport> Impair(std::unique_ptr<Transport> transport, const ImpairConfig& config,
                                  PeerId self, uint64_t seed);

}  // namespace tug

#endif  // TUG_TRANSPORT_IMPAIRED_TRANSPORT_H_
