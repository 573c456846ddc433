// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_ENCODE_LINK_RATE_H_
#define TUG_EXCHANGE_ENCODE_LINK_RATE_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace tug {

// Estimates the rate of a link in one direction from payloads that took long enough to measure. The
// time of a small message is latency, so a sample below kWholeBytes counts only if no sample is
// twice its size; when traffic becomes small, the rate stays.
//
//   Sent payloads: a sample covers the bytes acknowledged between the last acknowledgement before a
//   send and this send's own acknowledgement. Its duration is the time between the two, or between
//   the corresponding sends if that is longer: the delivery rate of BBR (Cardwell et al. 2016). It
//   is below the link's rate while there is nothing to send or others use the link, so the estimate
//   is the maximum of the newest samples. A sender that encodes neither sends nor reads
//   acknowledgements: the duration including encoding time gives a lower bound on the rate, without
//   it an upper bound. Such a sample changes only an estimate outside these bounds. (BBR calls such
//   samples application-limited.)
//
//   Arriving payloads: a sample runs from one arrival to that of others requested before it. They
//   may have waited locally before they were read, so the estimate is the median of the newest.
//
// Not thread-safe.
class LinkRate {
 public:
  static constexpr uint64_t kWholeBytes = 256 << 10;

  struct Moment {
    absl::Time at;
    absl::Duration encoded = {};  // total time the sender has spent encoding
  };
  // State kept for a message that is not acknowledged yet.
  struct Sent {
    uint64_t delivered = 0;
    Moment delivered_at;
    Moment first_sent;
    Moment sent = {absl::InfiniteFuture(), {}};  // InfiniteFuture: take no sample
  };
  // Call just before sending.
  Sent OnSent(const Moment& now);
  void OnDelivered(const Sent& sent, uint64_t bytes, const Moment& now);
  // Messages in flight will not be acknowledged.
  void Restart() { outstanding_ = 0; }

  void OnArrived(absl::Time asked, uint64_t bytes, absl::Time now);

  // 0: unknown.
  double bytes_per_second() const { return rate_; }

 private:
  static constexpr size_t kSamples = 9;
  struct Sample {
    uint64_t bytes = 0;
    double rate = 0;  // bytes/s
  };

  // Adds a sample whose duration is between the two bounds.
  void AddSent(uint64_t bytes, absl::Duration shortest, absl::Duration longest);
  // False if the sample is not informative.
  bool Add(uint64_t bytes, absl::Duration duration);
  // Rate at position rank(n), ascending, of the `n` newest samples that count.
  double Rank(size_t (*rank)(size_t n)) const;

  std::array<Sample, kSamples> samples_ = {};  // a ring
  uint32_t taken_ = 0;                         // samples ever
  uint64_t largest_ = 0;                       // bytes of the largest sample
  double rate_ = 0;
  // State of sent payloads.
  uint32_t outstanding_ = 0;
  uint64_t delivered_ = 0;  // bytes
  Moment delivered_at_;
  Moment first_sent_;  // send time of the message acknowledged last
  // State of arriving payloads: bytes arrived without a pause since `since_`.
  absl::Time since_;
  absl::Time last_ = absl::InfinitePast();
  uint64_t arrived_ = 0;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_ENCODE_LINK_RATE_H_
