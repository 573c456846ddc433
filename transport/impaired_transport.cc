// SPDX-License-Identifier: Apache-2.0
#include "transport/impaired_transport.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/philox.h"

namespace tug {
namespace {

constexpr absl::Duration kQueueRetry = absl::Milliseconds(1);

double SecondsPerByte(const ImpairConfig& config) {
  return config.rate_mbit() > 0 ? 8e-6 / config.rate_mbit() : 0;
}

}  // namespace

ImpairedTransport::ImpairedTransport(std::unique_ptr<Transport> transport,
                                     const ImpairConfig& config, PeerId self, uint64_t seed,
                                     const TimeSource* time)
    : transport_(std::move(transport)),
      delay_(absl::Milliseconds(config.delay_ms())),
      jitter_(absl::Milliseconds(config.jitter_ms())),
      loss_(config.loss()),
      seconds_per_byte_(SecondsPerByte(config)),
      self_(self),
      seed_(seed),
      owned_time_(time == nullptr ? std::make_unique<RealTime>() : nullptr),
      time_(time == nullptr ? *owned_time_ : *time) {}

absl::Status ImpairedTransport::Connect(PeerId peer, const std::string& endpoint) {
  return transport_->Connect(peer, endpoint);
}

// Time at which the link has passed `size_bytes` more.
absl::Time ImpairedTransport::LeavesLink(size_t size_bytes, absl::Time now) {
  if (seconds_per_byte_ == 0) return now;
  const absl::Duration burst = absl::Seconds(seconds_per_byte_ * kBurstBytes);
  link_free_ = std::max(link_free_, now - burst) +
               absl::Seconds(seconds_per_byte_ * static_cast<double>(size_bytes));
  return std::max(link_free_, now);
}

absl::Status ImpairedTransport::Send(Outgoing message) {
  const absl::Time now = time_.Now();
  const uint64_t n = next_message_++;
  const std::array<uint32_t, 4> bits =
      Philox4x32({static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), self_, 0},
                 {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  // A message that is lost after the link has still used it.
  const absl::Time passed = LeavesLink(kHeaderBytes + message.payload.size_bytes(), now);
  if (UniformFromBits(bits[0]) < loss_) {
    ++lost_;
    return absl::OkStatus();
  }
  last_due_ = std::max(last_due_, passed + delay_ + jitter_ * UniformFromBits(bits[1]));
  SendDue();
  if (waiting_.empty() && last_due_ <= now) return transport_->Send(std::move(message));
  waiting_.push_back({last_due_, std::move(message)});
  return absl::OkStatus();
}

void ImpairedTransport::SendDue() {
  if (waiting_.empty()) return;
  const absl::Time now = time_.Now();
  while (!waiting_.empty() && waiting_.front().due <= now) {
    const absl::Status status = transport_->Send(waiting_.front().message);
    if (absl::IsResourceExhausted(status)) return;  // our Send returned OK, so it stays queued
    if (!status.ok()) ++lost_;
    waiting_.pop_front();
  }
}

void ImpairedTransport::Poll(absl::Duration timeout, const std::function<void(Message)>& handler) {
  const absl::Time deadline =
      timeout == absl::InfiniteDuration() ? absl::InfiniteFuture() : time_.Now() + timeout;
  SendDue();
  if (waiting_.empty() || waiting_.front().due >= deadline) {
    transport_->Poll(timeout, handler);
  } else {
    const absl::Duration left = waiting_.front().due - time_.Now();
    // If the first message is overdue, the queue below is full.
    transport_->Poll(std::max(left, std::min(timeout, kQueueRetry)), handler);
  }
  SendDue();
}

TransportCounters ImpairedTransport::counters() const {
  TransportCounters counters = transport_->counters();
  counters.lost += lost_;
  return counters;
}

bool IsImpaired(const ImpairConfig& config) {
  return config.delay_ms() > 0 || config.jitter_ms() > 0 || config.loss() > 0 ||
         config.rate_mbit() > 0;
}

std::unique_ptr<Transport> Impair(std::unique_ptr<Transport> transport, const ImpairConfig& config,
                                  PeerId self, uint64_t seed) {
  if (!IsImpaired(config)) return transport;
  return std::make_unique<ImpairedTransport>(std::move(transport), config, self, seed);
}

}  // namespace tug
