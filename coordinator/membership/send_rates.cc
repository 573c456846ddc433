// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/send_rates.h"

#include "proto/control.pb.h"

namespace tug {

void SendRates::Add(const NodeCounters& totals, absl::Time now) {
  constexpr absl::Duration kSpan = absl::Seconds(1);
  const uint64_t sockets = totals.socket_bytes(), shared = totals.shared_memory_bytes();
  if (!since_.has_value() || sockets < sockets_.bytes || shared < shared_memory_.bytes) {
    sockets_ = {.bytes = sockets};
    shared_memory_ = {.bytes = shared};
    since_ = now;
    return;
  }
  const absl::Duration passed = now - *since_;
  if (passed < kSpan) return;
  const auto average = [passed](uint64_t bytes, const Medium& before) {
    return Medium{bytes, static_cast<double>(bytes - before.bytes) / absl::ToDoubleSeconds(passed)};
  };
  sockets_ = average(sockets, sockets_);
  shared_memory_ = average(shared, shared_memory_);
  since_ = now;
}

}  // namespace tug
