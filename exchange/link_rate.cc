#include "exchange/link_rate.h"

#include <algorithm>

namespace tug {

bool LinkRate::Add(uint64_t bytes, absl::Duration duration) {
  if (duration <= absl::ZeroDuration() || duration == absl::InfiniteDuration()) return false;
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

LinkRate::Sent LinkRate::OnSent(absl::Time now) {
  if (outstanding_++ == 0) first_sent_ = delivered_at_ = now;
  return {delivered_, delivered_at_, first_sent_, now};
}

void LinkRate::OnDelivered(const Sent& sent, uint64_t bytes, absl::Time now) {
  if (outstanding_ > 0) --outstanding_;
  delivered_ += bytes;
  delivered_at_ = now;
  if (sent.at == absl::InfiniteFuture()) return;
  first_sent_ = sent.at;
  const absl::Duration duration = std::max(now - sent.delivered_at, sent.at - sent.first_sent);
  if (Add(delivered_ - sent.delivered, duration)) {
    rate_ = Rank([](size_t n) { return n - 1; });
  }
}

void LinkRate::OnArrived(absl::Time asked, uint64_t bytes, absl::Time now) {
  const bool paused = asked > last_;  // there was nothing that could have come
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
