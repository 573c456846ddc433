// SPDX-License-Identifier: Apache-2.0
#include "exchange/encode/codec_chooser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "exchange/encode/link_rate.h"

namespace tug {
namespace {

constexpr double kMbit = 1e6 / 8;  // bytes/s
constexpr uint64_t kElements = 262144;

// ---- links ----

class LinkRateTest : public testing::Test {
 protected:
  // Sends one message over a link of this rate; its acknowledgement takes `latency` more.
  void Send(uint64_t bytes, double bytes_per_second,
            absl::Duration latency = absl::Milliseconds(1)) {
    const LinkRate::Sent sent = rate_.OnSent({now_});
    now_ += absl::Seconds(static_cast<double>(bytes) / bytes_per_second) + latency;
    rate_.OnDelivered(sent, bytes, {now_});
  }

  LinkRate rate_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(LinkRateTest, IsNotKnownAtFirst) { EXPECT_EQ(rate_.bytes_per_second(), 0); }

TEST_F(LinkRateTest, IsThatOfMessagesThatTakeLongerThanTheirAnswer) {
  Send(1 << 20, 100 * kMbit);
  EXPECT_NEAR(rate_.bytes_per_second(), 100 * kMbit, 2 * kMbit);
}

TEST_F(LinkRateTest, CountsWhatArrivesMeanwhile) {
  const LinkRate::Sent first = rate_.OnSent({now_});
  const LinkRate::Sent second = rate_.OnSent({now_});
  now_ += absl::Seconds(1);
  rate_.OnDelivered(first, 1000000, {now_});
  EXPECT_NEAR(rate_.bytes_per_second(), 1e6, 1);
  now_ += absl::Seconds(1);
  rate_.OnDelivered(second, 1000000, {now_});
  EXPECT_NEAR(rate_.bytes_per_second(), 1e6, 1) << "two million in two seconds";
}

// A sender that encodes reads acknowledgements late.
TEST_F(LinkRateTest, IsNoHigherForAnswersThatAreLookedAtLate) {
  std::vector<LinkRate::Sent> sent;
  for (int i = 0; i < 8; ++i) {
    sent.push_back(rate_.OnSent({now_}));
    now_ += absl::Seconds(1);  // each message arrives within its second
  }
  for (const LinkRate::Sent& message : sent) rate_.OnDelivered(message, 1000000, {now_});
  const LinkRate::Sent last = rate_.OnSent({now_});
  now_ += absl::Seconds(1);
  rate_.OnDelivered(last, 1000000, {now_});
  EXPECT_NEAR(rate_.bytes_per_second(), 1e6, 1e5);
}

TEST_F(LinkRateTest, StaysAsItIsWhenTrafficBecomesSmall) {
  for (int i = 0; i < 9; ++i) Send(1 << 20, 1000 * kMbit);
  const double before = rate_.bytes_per_second();
  for (int i = 0; i < 1000; ++i) Send(5000, 1000 * kMbit);  // takes nearly all of it as latency
  EXPECT_EQ(rate_.bytes_per_second(), before);
}

TEST_F(LinkRateTest, TakesSmallMessagesWhereThereAreNoOthers) {
  Send(6000, 10 * kMbit, absl::ZeroDuration());
  EXPECT_NEAR(rate_.bytes_per_second(), 10 * kMbit, kMbit);
  Send(1 << 20, 100 * kMbit);
  EXPECT_NEAR(rate_.bytes_per_second(), 100 * kMbit, 2 * kMbit) << "a large one tells more";
}

TEST_F(LinkRateTest, FollowsALinkThatBecomesSlowerOrFaster) {
  for (int i = 0; i < 9; ++i) Send(1 << 20, 1000 * kMbit);
  for (int i = 0; i < 9; ++i) Send(1 << 20, 10 * kMbit);
  EXPECT_NEAR(rate_.bytes_per_second(), 10 * kMbit, kMbit);
  Send(1 << 20, 100 * kMbit);
  EXPECT_NEAR(rate_.bytes_per_second(), 100 * kMbit, 2 * kMbit);
}

TEST_F(LinkRateTest, LearnsNothingOfAMessageThatWasSentTwice) {
  rate_.OnDelivered({}, 1 << 20, {now_ + absl::Seconds(10)});
  EXPECT_EQ(rate_.bytes_per_second(), 0);
}

TEST_F(LinkRateTest, LearnsNothingOfAMessageWithoutBytes) {
  Send(0, 10 * kMbit);
  EXPECT_EQ(rate_.bytes_per_second(), 0);
  Send(1 << 20, 10 * kMbit);
  EXPECT_NEAR(rate_.bytes_per_second(), 10 * kMbit, kMbit);
}

// With half of each second spent encoding, sending a million bytes took 0.5 to 1 s.
TEST_F(LinkRateTest, TakesASampleWithEncodingForABound) {
  absl::Duration encoded;
  const auto send = [&](absl::Duration encoding) {
    const LinkRate::Sent sent = rate_.OnSent({now_, encoded});
    now_ += absl::Seconds(1);
    encoded += encoding;
    rate_.OnDelivered(sent, 1000000, {now_, encoded});
  };
  Send(1 << 20, 1.5e6, absl::ZeroDuration());
  for (int i = 0; i < 20; ++i) send(absl::Seconds(0.5));
  EXPECT_NEAR(rate_.bytes_per_second(), 1.5e6, 1);
  for (int i = 0; i < 20; ++i) send(absl::Seconds(0.2));
  EXPECT_NEAR(rate_.bytes_per_second(), 1.25e6, 1) << "no faster";
  Send(1 << 20, 0.1e6, absl::ZeroDuration());
  for (int i = 0; i < 20; ++i) Send(1 << 20, 0.1e6, absl::ZeroDuration());
  send(absl::Seconds(0.5));
  EXPECT_NEAR(rate_.bytes_per_second(), 1e6, 1) << "no slower";
}

TEST_F(LinkRateTest, ArrivalRateExcludesWaitForFirstArrival) {
  for (int step = 0; step < 3; ++step) {
    const absl::Time asked = now_;
    now_ += absl::Seconds(5);  // until the weights exist
    for (int i = 0; i < 4; ++i) {
      now_ += absl::Seconds(0.1);
      rate_.OnArrived(asked, 1000000, now_);
    }
  }
  EXPECT_NEAR(rate_.bytes_per_second(), 1e7, 1);
}

TEST_F(LinkRateTest, PutsSmallArrivalsTogether) {
  for (int step = 0; step < 2; ++step) {
    const absl::Time asked = now_ += absl::Seconds(1);
    for (int i = 0; i < 5; ++i) {
      now_ += absl::Seconds(0.01);
      rate_.OnArrived(asked, 10000, now_);
    }
  }
  EXPECT_NEAR(rate_.bytes_per_second(), 1e6, 1);
}

// ---- choices ----

void SetLink(LinkRate& link, double bytes_per_second) {
  link.OnDelivered(link.OnSent({absl::UnixEpoch()}), 1 << 20,
                   {absl::UnixEpoch() + absl::Seconds((1 << 20) / bytes_per_second)});
}

// FP32 and three codecs, each with fewer bytes and more time than the previous one.
class CodecChooserTest : public testing::Test {
 protected:
  static constexpr std::array<double, 4> kBytes = {4, 1.02, 0.13, 0.02};
  static constexpr std::array<double, 4> kSeconds = {0, 0.5e-9, 0.7e-9, 2e-9};

  // Runs a step of eight segments over a lane. Returns how often each method was chosen.
  std::array<int, 4> Step(double link, uint32_t lane = 7) {
    std::array<int, 4> chosen = {};
    for (int i = 0; i < 8; ++i) {
      const uint32_t method = chooser_.Choose(lane, false, kElements, clock_);
      ++chosen[method];
      const auto bytes = static_cast<uint64_t>(kBytes[method] * kElements);
      if (method > 0) chooser_.OnMade(method, kElements, bytes, kSeconds[method] * kElements);
      const LinkRate::Sent sent = chooser_.link(lane).OnSent({now_});
      now_ += absl::Seconds(static_cast<double>(bytes) / link) + absl::Milliseconds(1);
      chooser_.link(lane).OnDelivered(sent, bytes, {now_});
    }
    ++clock_;
    return chosen;
  }
  // Runs `steps` steps, then returns the choices of one more.
  std::array<int, 4> After(int steps, double link) {
    for (int i = 0; i < steps; ++i) Step(link);
    return Step(link);
  }

  CodecChooser chooser_ = CodecChooser(kBytes);
  absl::Time now_ = absl::UnixEpoch();
  uint64_t clock_ = 0;
};

TEST_F(CodecChooserTest, MeasuresEveryMethodFirst) {
  const std::array<int, 4> first = Step(100 * kMbit);
  for (const int count : first) EXPECT_EQ(count, 2);
}

TEST_F(CodecChooserTest, TakesFewestBytesOnASlowLink) { EXPECT_EQ(After(5, 100 * kMbit)[3], 8); }

TEST_F(CodecChooserTest, TakesLessEncodingOnAFasterLink) {
  EXPECT_EQ(After(5, 2000 * kMbit)[2], 8);
}

TEST_F(CodecChooserTest, TakesFp32OnAFastLink) {
  // At memory speed, encoding costs more than it saves. The link is measured without latency, which
  // would hide its rate.
  for (uint32_t m = 1; m < 4; ++m) {
    for (int i = 0; i < 3; ++i) chooser_.OnMade(m, kElements, kElements, kSeconds[m] * kElements);
  }
  SetLink(chooser_.link(7), 20e9);
  EXPECT_EQ(chooser_.Choose(7, false, kElements, 1), 0u);
}

TEST_F(CodecChooserTest, TakesFp32ThroughSharedMemoryAtOnceAndMeasuresNothing) {
  for (uint64_t clock = 0; clock < 1000; ++clock) {
    ASSERT_EQ(chooser_.Choose(7, true, kElements, clock), 0u);
  }
  const auto chosen = chooser_.chosen();
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_TRUE(chosen[0].settled);
  EXPECT_EQ(chosen[0].bytes_per_second, 0);
}

TEST_F(CodecChooserTest, SendsFewBytesOnceFp32HasLeftAndTheRateIsNotKnown) {
  for (uint32_t m = 1; m < 4; ++m) {
    const auto bytes = static_cast<uint64_t>(kBytes[m] * kElements);
    for (int i = 0; i < 3; ++i) chooser_.OnMade(m, kElements, bytes, kSeconds[m] * kElements);
  }
  EXPECT_EQ(chooser_.Choose(7, false, kElements, 1), 0u);
  EXPECT_EQ(chooser_.Choose(7, false, kElements, 1), 3u);
}

TEST_F(CodecChooserTest, FollowsALinkThatBecomesFasterAndSlower) {
  EXPECT_EQ(After(5, 100 * kMbit)[3], 8);
  // Regular payloads are too small to measure the link; probes measure it.
  for (uint64_t i = 0; i < 2 * CodecChooser::kMeasureClocks; ++i) Step(2000 * kMbit);
  EXPECT_GE(Step(2000 * kMbit)[2], 6);
  for (uint64_t i = 0; i < 10 * CodecChooser::kMeasureClocks; ++i) Step(50 * kMbit);
  EXPECT_GE(Step(50 * kMbit)[3], 6);
}

TEST_F(CodecChooserTest, MeasuresOthersRarely) {
  After(8, 100 * kMbit);
  int others = 0;
  for (uint64_t i = 0; i < 2 * CodecChooser::kMeasureClocks; ++i)
    others += 8 - Step(100 * kMbit)[3];
  EXPECT_GE(others, 2);
  EXPECT_LE(others, 4);
}

// Workers measure the link at first while all of them share it, so it seems slow.
TEST_F(CodecChooserTest, LooksSoonWhetherTheLinkIsFasterWhereThatWouldChangeTheChoice) {
  EXPECT_EQ(After(5, 300 * kMbit)[3], 8);
  for (int i = 0; i < 8; ++i) Step(2000 * kMbit);
  EXPECT_GE(Step(2000 * kMbit)[2], 7);
}

// The first segment of a step that is large enough measures the link.
TEST_F(CodecChooserTest, FollowsALinkWhereASmallSegmentIsTheFirstOfAStep) {
  constexpr std::array<uint64_t, 5> kSizes = {2048, 2048, kElements, kElements, kElements};
  const auto step = [&](double link) {
    uint32_t method = 0;
    for (const uint64_t elements : kSizes) {
      method = chooser_.Choose(7, false, elements, clock_);
      const auto n = static_cast<double>(elements);
      const auto bytes = static_cast<uint64_t>(kBytes[method] * n);
      if (method > 0) chooser_.OnMade(method, elements, bytes, kSeconds[method] * n);
      const LinkRate::Sent sent = chooser_.link(7).OnSent({now_});
      now_ += absl::Seconds(static_cast<double>(bytes) / link);
      chooser_.link(7).OnDelivered(sent, bytes, {now_});
    }
    ++clock_;
    return method;
  };
  for (int i = 0; i < 20; ++i) step(1e6);
  EXPECT_EQ(step(1e6), 3u);
  for (uint64_t i = 0; i < 4 * CodecChooser::kMeasureClocks; ++i) step(1e9);
  EXPECT_EQ(step(1e9), 2u);
}

// A sender that encodes a whole step before it reads acknowledgements, except after a probe.
TEST_F(CodecChooserTest, FollowsALinkThoughEncodingTakesLongerThanSending) {
  constexpr std::array<double, 3> kFewBytes = {4, 1.02, 0.02};
  constexpr std::array<double, 3> kNanoseconds = {0, 0.2, 1.7};
  chooser_ = CodecChooser(kFewBytes);
  struct OnItsWay {
    LinkRate::Sent sent;
    uint64_t bytes;
    absl::Time arrival;
  };
  std::vector<OnItsWay> under_way;
  absl::Duration encoded;
  absl::Time link_is_free = now_;
  const auto look = [&] {
    for (const OnItsWay& message : std::exchange(under_way, {})) {
      now_ = std::max(now_, message.arrival + absl::Microseconds(50));
      chooser_.link(7).OnDelivered(message.sent, message.bytes, {now_, encoded});
    }
  };
  const auto step = [&](double link) {
    std::array<int, 3> chosen = {};
    for (int i = 0; i < 28; ++i) {
      const uint32_t method = chooser_.Choose(7, false, kElements, clock_);
      ++chosen[method];
      const auto bytes = static_cast<uint64_t>(kFewBytes[method] * kElements);
      const absl::Duration encoding = absl::Nanoseconds(kNanoseconds[method] * kElements);
      if (method > 0) chooser_.OnMade(method, kElements, bytes, absl::ToDoubleSeconds(encoding));
      now_ += encoding;
      encoded += encoding;
      const LinkRate::Sent sent = chooser_.link(7).OnSent({now_, encoded});
      link_is_free = std::max(link_is_free, now_) + absl::Seconds(bytes / link);
      under_way.push_back({sent, bytes, link_is_free});
      if (chooser_.TakeProbe(7)) look();
    }
    look();
    now_ += absl::Milliseconds(20);  // until the next gradients
    ++clock_;
    return chosen;
  };
  const auto follow = [&](double link, size_t method) {
    for (int i = 0; i < 300; ++i) step(link);
    EXPECT_GE(step(link)[method], 26) << link;
  };
  follow(100 * kMbit, 2);
  follow(10000 * kMbit, 1);
  follow(100 * kMbit, 2);
}

TEST_F(CodecChooserTest, StaysWithAMethodThatIsNearlyAsFast) {
  const std::vector<double> bytes = {4, 1.02, 1.0};
  CodecChooser chooser(bytes);
  const auto made = [&](uint32_t method, double seconds) {
    for (int i = 0; i < 5; ++i) {
      chooser.OnMade(method, kElements, static_cast<uint64_t>(bytes[method] * kElements),
                     seconds * kElements);
    }
  };
  made(1, 1e-9);
  made(2, 1.1e-9);
  SetLink(chooser.link(7), 1e9);
  EXPECT_EQ(chooser.Choose(7, false, kElements, 1), 1u);
  made(2, 0.95e-9);
  EXPECT_EQ(chooser.Choose(7, false, kElements, 2), 1u);
  made(2, 0.5e-9);
  EXPECT_EQ(chooser.Choose(7, false, kElements, 3), 2u);
}

TEST_F(CodecChooserTest, TakesTheMedianOfWhatEncodingTook) {
  for (int i = 0; i < 5; ++i) Step(100 * kMbit);
  chooser_.OnMade(3, kElements, 5000, 1.0);  // another process had the core
  chooser_.OnMade(3, kElements, 5000, 1.0);
  EXPECT_EQ(Step(100 * kMbit)[3], 8);
}

TEST_F(CodecChooserTest, ChoosesForEveryLane) {
  for (int i = 0; i < 5; ++i) {
    Step(100 * kMbit, 1);
    Step(2000 * kMbit, 2);
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_GE(Step(100 * kMbit, 1)[3], 7);
    EXPECT_GE(Step(2000 * kMbit, 2)[2], 7);
  }
  const auto chosen = chooser_.chosen();
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0].method, 3u);
  EXPECT_EQ(chosen[1].method, 2u);
  EXPECT_TRUE(chosen[0].settled && chosen[1].settled);
  chooser_.KeepLanes(std::vector<uint32_t>{2});
  EXPECT_EQ(chooser_.chosen().size(), 1u);
}

}  // namespace
}  // namespace tug
