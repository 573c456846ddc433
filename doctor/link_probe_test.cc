// SPDX-License-Identifier: Apache-2.0
#include "doctor/link_probe.h"

#include <cstdlib>
#include <thread>

#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

TEST(LinkProbe, MeasuresLoopbackBothWays) {
  const auto listener = ListenAt("127.0.0.1");
  ASSERT_TRUE(listener.ok()) << listener.status();
  absl::Status answered;
  std::thread answerer([&] { answered = AnswerLink(*listener, kPatience); });
  const auto report = AskLink("127.0.0.1", listener->port, absl::Milliseconds(50), kPatience);
  answerer.join();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(answered.ok()) << answered;
  EXPECT_GT(report->round_trip_us, 0);
  EXPECT_GT(report->there_bytes_per_second, 1e6);
  EXPECT_GT(report->back_bytes_per_second, 1e6);
  EXPECT_LE(std::abs(report->clock_ahead_ns), report->clock_error_ns) << "it is the same clock";
}

TEST(LinkProbe, SaysThatNobodyIsThere) {
  uint16_t port = 0;
  {
    const auto listener = ListenAt("127.0.0.1");
    ASSERT_TRUE(listener.ok());
    port = listener->port;
    EXPECT_EQ(AnswerLink(*listener, absl::Milliseconds(1)).code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  const auto report = AskLink("127.0.0.1", port, absl::Milliseconds(10), kPatience);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kUnavailable) << report.status();
}

TEST(LinkProbe, EndsWithAPeerThatGoesAway) {
  const auto listener = ListenAt("127.0.0.1");
  ASSERT_TRUE(listener.ok());
  std::thread peer([&] { EXPECT_TRUE(Accept(*listener, kPatience).ok()); });  // and closes it
  EXPECT_FALSE(AskLink("127.0.0.1", listener->port, absl::Milliseconds(10), kPatience).ok());
  peer.join();
}

}  // namespace
}  // namespace tug
