// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/send_rates.h"

#include "gtest/gtest.h"
#include "proto/control.pb.h"

namespace tug {
namespace {

struct Beat {
  double at_seconds;
  uint64_t socket_bytes, shared_memory_bytes;  // totals
  double sockets, shared_memory;               // rates then
};

TEST(SendRates, AreAveragesOverAtLeastASecond) {
  constexpr Beat kBeats[] = {
      {0.0, 1000, 5000, 0, 0},     // nothing to compare with
      {0.5, 2000, 9000, 0, 0},     // less than a second
      {2.0, 5000, 5000, 2000, 0},  // since the first
      {3.0, 5000, 8000, 0, 3000},  // one medium pauses
      {4.0, 100, 8000, 0, 0},      // a total has fallen: a new average
      {6.0, 300, 9000, 100, 500},  // since then
      {6.5, 900, 9900, 100, 500},  // less than a second
  };
  SendRates rates;
  for (const Beat& beat : kBeats) {
    NodeCounters totals;
    totals.set_socket_bytes(beat.socket_bytes);
    totals.set_shared_memory_bytes(beat.shared_memory_bytes);
    rates.Add(totals, absl::UnixEpoch() + absl::Seconds(beat.at_seconds));
    EXPECT_DOUBLE_EQ(rates.sockets(), beat.sockets) << beat.at_seconds;
    EXPECT_DOUBLE_EQ(rates.shared_memory(), beat.shared_memory) << beat.at_seconds;
  }
}

}  // namespace
}  // namespace tug
