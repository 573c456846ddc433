// SPDX-License-Identifier: Apache-2.0
#include "exchange/encode/link_rate.h"

#include <algorithm>

namespace tug {

bool LinkRate::Add(uint64_t bytes, absl::Duration duration) {
  const bool timed = duration > absl::ZeroDuration() && duration < absl::InfiniteDuration();
  if (bytes == 0 || !timed) return false;
  largest_ = std::max(largest_, bytes);
  if (bytes < std::min(kWholeBytes, largest_ / 2)) return false;
  samples_[taken_++ % kSamples] = {bytes,
                                   static_cast<double>(bytes) / absl::ToDoubleSeconds(duration)};
  return true;
}

double LinkRate::Rank(size_t (*rank)(size_t n)) const {
  std::array<double, kSamples> rates = {};
  size_t n = 0;
  for (const Sample& sample : samples_) {
    if (sample.rate > 0 && sample.bytes >= std::min(kWholeBytes, largest_ / 2)) {
      rates[n++] = sample.rate;
    }
  }
  const auto at = rates.begin() + static_cast<ptrdiff_t>(rank(n));
  std::nth_element(rates.begin(), at, rates.begin() + static_cast<ptrdiff_t>(n));
  return *at;
}

LinkRate::Sent LinkRate::OnSent(const Moment& now) {
  if (outstanding_++ == 0) first_sent_ = delivered_at_ = now;
  return {delivered_, delivered_at_, first_sent_, now};
}

void LinkRate::OnDelivered(const Sent& sent, uint64_t bytes, const Moment& now) {
  if (outstanding_ > 0) --outstanding_;
  delivered_ += bytes;
  delivered_at_ = now;
  if (sent.sent.at == absl::InfiniteFuture()) return;
  first_sent_ = sent.sent;
  const absl::Duration answers = now.at - sent.delivered_at.at;
  const absl::Duration sendings = sent.sent.at - sent.first_sent.at;
  const absl::Duration encoded = answers >= sendings ? now.encoded - sent.delivered_at.encoded
                                                     : sent.sent.encoded - sent.first_sent.encoded;
  const absl::Duration longest = std::max(answers, sendings);
  AddSent(delivered_ - sent.delivered, longest - encoded, longest);
}

void LinkRate::AddSent(uint64_t bytes, absl::Duration shortest, absl::Duration longest) {
  absl::Duration duration = longest;
  if (rate_ > 0 && shortest < longest) {
    const absl::Duration expected = absl::Seconds(static_cast<double>(bytes) / rate_);
    if (shortest <= expected && expected <= longest) return;
    if (expected < shortest) duration = shortest;
  }
  if (Add(bytes, duration)) rate_ = Rank([](size_t n) { return n - 1; });
}

void LinkRate::OnArrived(absl::Time asked, uint64_t bytes, absl::Time now) {
  const bool paused = asked > last_;  // requested after the last arrival
  if (!paused) arrived_ += bytes;
  if (arrived_ > 0 && (paused || arrived_ >= kWholeBytes)) {
    if (Add(arrived_, (paused ? last_ : now) - since_)) {
      rate_ = Rank([](size_t n) { return n / 2; });
    }
    arrived_ = 0;
    since_ = now;
  }
  if (paused) since_ = now;
  last_ = now;
}

}  // namespace tug
