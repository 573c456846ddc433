#include "experiment/link_plan.h"

#include "gtest/gtest.h"
#include "model/replay_profile.h"

namespace tug {
namespace {

TEST(LinkRate, IsReadAsTheTestbedReadsIt) {
  EXPECT_EQ(ParseLinkRate("200mbit").value(), 2e8);
  EXPECT_EQ(ParseLinkRate("1gbit").value(), 1e9);
  EXPECT_EQ(ParseLinkRate("64kbit").value(), 64e3);
  EXPECT_EQ(ParseLinkRate("9bit").value(), 9);
  for (const char* wrong : {"", "200", "mbit", "0mbit", "-1mbit", "1.5gbit", "1 gbit", "fast",
                            "1234567mbit", "+1mbit"}) {
    EXPECT_FALSE(ParseLinkRate(wrong).ok()) << wrong;
  }
}

TEST(LinkRate, LeavesRoomForHeaders) { EXPECT_NEAR(PayloadBytesPerSecond(1e9), 119.55e6, 0.01e6); }

TEST(BusiestLink, IsThatOfTheFewerKind) {
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4}), 2);
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 1, .workers = 4}), 4);
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 4, .workers = 2}), 1) << "a worker's own model";
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4, .hosts = 6}), 2);
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4, .hosts = 9}), 2);
}

TEST(BusiestLink, LeavesOutWhatStaysWithinAHost) {
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 1, .workers = 1, .hosts = 1}), 0);
  // Each of two hosts: one server, two workers; pushes of its workers to the other server, and
  // weights to the other's workers.
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4, .hosts = 2}), 2);
  // Servers on 0 and 1, workers on 2, 0, 1, 2.
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4, .hosts = 3}), 2);
}

TEST(ScaleToLink, MakesBytesTakeTheTimeAndComputeStandInTheRatio) {
  const ReplayProfile profile = LoadReplayProfile("vgg16").value();
  const JobHosts nodes{.servers = 2, .workers = 4};
  for (const double ratio : {0.5, 1.0, 2.0}) {
    const ReplayScale scale = ScaleToLink(profile, nodes, 2e8, 0.7, ratio);
    const ReplayProfile scaled = ScaledReplayProfile(profile, scale.time_scale, scale.size_scale);
    const double compute = (ReplayForwardMs(scaled) + ReplayBackwardMs(scaled)) * 1e-3;
    const double bytes = 2.0 * 4 * static_cast<double>(ReplayParameters(scaled));
    const double transfer = bytes / PayloadBytesPerSecond(2e8);
    EXPECT_NEAR(transfer, 0.7, 1e-3);
    EXPECT_NEAR(transfer / compute, ratio, 1e-3 * ratio);
    EXPECT_NEAR(scale.compute_seconds, compute, 1e-6);
    EXPECT_NEAR(scale.model_bytes * 2, bytes, 1e-4 * bytes);
  }
}

TEST(Grain, IsAFewHundredPartitionsOfAModelAndOneSegmentEach) {
  for (const double bytes : {3e6, 8e6, 12e6, 100e6, 553e6}) {
    const LinkGrain grain = GrainOf(bytes, 2);
    const double partitions = bytes / static_cast<double>(grain.partition_bytes);
    EXPECT_GT(partitions, 100) << bytes;
    EXPECT_LT(partitions, 1100) << bytes;
    EXPECT_EQ(grain.segment_elements * sizeof(float), grain.partition_bytes);
    EXPECT_GE(grain.credit_bytes, 2 * grain.partition_bytes);
    EXPECT_GE(GrainOf(bytes, 8).pull_credit_bytes, 8 * grain.credit_bytes);
  }
  EXPECT_EQ(GrainOf(1, 2).partition_bytes, 4096u) << "the least that a job may have";
  EXPECT_EQ(GrainOf(1e12, 2).partition_bytes, uint64_t{4} << 20);
}

}  // namespace
}  // namespace tug
