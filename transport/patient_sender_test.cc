// SPDX-License-Identifier: Apache-2.0
#include "transport/patient_sender.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;

// Accepts up to `room` messages; only peers below 100 exist.
class NarrowTransport final : public Transport {
 public:
  absl::Status Connect(PeerId, const std::string&) override { return absl::OkStatus(); }
  absl::Status Send(Outgoing message) override {
    if (message.to >= 100) return absl::NotFoundError("nobody");
    if (room == 0) return absl::ResourceExhaustedError("full");
    --room;
    sent.push_back(message.header.clock);
    return absl::OkStatus();
  }
  void Poll(absl::Duration, const std::function<void(Message)>&) override {}
  void Wake() override {}
  TransportCounters counters() const override { return {}; }

  int room = 0;
  std::vector<uint64_t> sent;
};

Outgoing Numbered(PeerId to, uint64_t clock) {
  Outgoing message;
  message.to = to;
  message.header.clock = clock;
  return message;
}

TEST(PatientSender, KeepsWhatDoesNotFitAndItsOrder) {
  NarrowTransport transport;
  PatientSender sender(transport);
  transport.room = 1;
  for (uint64_t clock = 1; clock <= 3; ++clock) sender.Send(Numbered(7, clock));
  EXPECT_THAT(transport.sent, ElementsAre(1));
  EXPECT_EQ(sender.PollTime(absl::Seconds(1)), PatientSender::kRetry);
  transport.room = 10;
  sender.Send(Numbered(7, 4));  // queued behind the kept messages
  EXPECT_THAT(transport.sent, ElementsAre(1));
  sender.Retry();
  EXPECT_THAT(transport.sent, ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(sender.waiting());
  EXPECT_EQ(sender.PollTime(absl::Seconds(1)), absl::Seconds(1));
}

TEST(PatientSender, GivesUpWhatNobodyIsThereFor) {
  NarrowTransport transport;
  PatientSender sender(transport);
  sender.Send(Numbered(100, 1));
  EXPECT_FALSE(sender.waiting());
}

}  // namespace
}  // namespace tug
