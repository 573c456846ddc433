#ifndef TUG_EXCHANGE_LINK_RATE_H_
#define TUG_EXCHANGE_LINK_RATE_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace tug {

// How fast payloads go over a link in one direction, from those that took long enough to tell. What
// a small message takes is latency, so a sample of less than kWholeBytes counts only where there
// are none of twice its bytes; traffic that has become small leaves the rate as it was.
//
//   Sent payloads: what has arrived from the newest answer before the sending of one to its own
//   answer, over that time, or that of the sendings where it is longer: the delivery rate of BBR
//   (Cardwell et al. 2016). It is less than the link has while there is nothing to send, or others
//   use the link too, so the rate is the largest of the newest samples. Who encodes neither sends
//   nor looks at answers: with that time a sample says how fast the link is at least, without it
//   how fast at most, and it changes only a rate that is not between the two. (BBR knows such
//   samples as limited by the application.)
//
//   Arriving ones: from the arrival of one to that of others that had been asked for by then. They
//   may have waited here before they were looked at, so the rate is the median of the newest.
//
// Not thread-safe.
class LinkRate {
 public:
  static constexpr uint64_t kWholeBytes = 256 << 10;

  struct Moment {
    absl::Time at;
    absl::Duration encoded = {};  // what the sender has spent encoding, ever
  };
  // A message that is not answered yet.
  struct Sent {
    uint64_t delivered = 0;
    Moment delivered_at;
    Moment first_sent;
    Moment sent = {absl::InfiniteFuture(), {}};  // nothing is learned of the message
  };
  // Just before it is sent.
  Sent OnSent(const Moment& now);
  void OnDelivered(const Sent& sent, uint64_t bytes, const Moment& now);
  // Nothing more is heard of what is on its way.
  void Restart() { outstanding_ = 0; }

  void OnArrived(absl::Time asked, uint64_t bytes, absl::Time now);

  // 0: not known.
  double bytes_per_second() const { return rate_; }

 private:
  static constexpr size_t kSamples = 9;
  struct Sample {
    uint64_t bytes = 0;
    double rate = 0;  // bytes/s
  };

  // Of a sample that took no less than one of the durations, and no more than the other.
  void AddSent(uint64_t bytes, absl::Duration shortest, absl::Duration longest);
  // False if it tells nothing.
  bool Add(uint64_t bytes, absl::Duration duration);
  // Of the newest samples that count, that which so many are smaller than, of `n`.
  double Rank(size_t (*rank)(size_t n)) const;

  std::array<Sample, kSamples> samples_ = {};  // a ring
  uint32_t taken_ = 0;                         // ever
  uint64_t largest_ = 0;                       // bytes of a sample
  double rate_ = 0;
  // Of sent ones.
  uint32_t outstanding_ = 0;
  uint64_t delivered_ = 0;  // bytes
  Moment delivered_at_;
  Moment first_sent_;  // when that which was delivered last was sent
  // Of arriving ones: since when which bytes have come, without a pause.
  absl::Time since_;
  absl::Time last_ = absl::InfinitePast();
  uint64_t arrived_ = 0;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_LINK_RATE_H_
