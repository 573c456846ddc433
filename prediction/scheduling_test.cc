// SPDX-License-Identifier: Apache-2.0
#include "prediction/scheduling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "prediction/replay_cluster.h"
#include "prediction/replay_traffic.h"
#include "prediction/scheduling_test_support.h"

namespace tug {
namespace {

using Kind = SimulatedSpan::Kind;

// Hosts that cost nothing except their links.
SimulatedHosts Links(double bytes_per_second) {
  return {.link_bytes_per_second = bytes_per_second};
}

SchedulingPrediction Predict(const JobConfig& job, const SimulatedHosts& hosts) {
  const absl::StatusOr<SchedulingPrediction> prediction = PredictScheduling(job, hosts);
  TUG_CHECK_OK(prediction.status());
  return *prediction;
}

// ---- by hand ----

TEST(PredictScheduling, PushesAndPullsASingleSegmentOneAfterTheOther) {
  // backward 0..2, push 2..6.25, weights 6.25..10.5, forward 10.5..11.5: the last of 16 chunks
  // crosses the two links of a way one after the other.
  const SchedulingPrediction p = Predict(ReplayJob(ProfileOf({{100000, 1, 2}}), {}), Links(1e8));
  EXPECT_NEAR(p.step_seconds, 0.0115, 1e-4);
  EXPECT_NEAR(p.compute_seconds, 0.003, 1e-12);
  EXPECT_NEAR(p.exposed_seconds, 0.0085, 1e-4);
  ASSERT_EQ(p.spans.size(), 4u);
  EXPECT_EQ(p.spans[0].kind, Kind::kBackward);
  EXPECT_NEAR(p.spans[0].begin_seconds, 0, 1e-12);
  EXPECT_EQ(p.spans[1].kind, Kind::kPush);
  EXPECT_NEAR(p.spans[1].begin_seconds, 0.002, 1e-9);
  EXPECT_EQ(p.spans[2].kind, Kind::kPull);
  EXPECT_NEAR(p.spans[2].begin_seconds, 0.00625, 1e-4);
  EXPECT_NEAR(p.spans[2].end_seconds, 0.0105, 1e-4);
  EXPECT_EQ(p.spans[3].kind, Kind::kForward);
  EXPECT_NEAR(p.spans[3].end_seconds, p.step_seconds, 1e-9);
}

TEST(PredictScheduling, PullsTheFirstPartitionsWhileTheLastArePushed) {
  // 100 segments of 4.096 ms cross one after the other, then the weights of the last four, whose
  // pulls waited in the connection behind their gradients.
  const SchedulingPrediction p = Predict(
      ReplayJob(
          ProfileOf({{100 * 1024, 1, 2}}),
          {"comm.segment_elements=1024", "comm.partition_bytes=4096", "comm.credit_bytes=16384"}),
      Links(1e6));
  EXPECT_GT(p.step_seconds, 0.003 + 101 * 0.004096);
  EXPECT_LT(p.step_seconds, 0.003 + 110 * 0.004096);
}

TEST(PredictScheduling, CountsLatencyAndMessages) {
  const JobConfig job = ReplayJob(ProfileOf({{100000, 1, 2}}), {});
  SimulatedHosts hosts = Links(1e8);
  const double without = Predict(job, hosts).step_seconds;
  hosts.latency_seconds = 0.01;  // of the push and of the weights; the pull is ahead
  EXPECT_NEAR(Predict(job, hosts).step_seconds, without + 0.02, 0.001);
  hosts = Links(1e8);
  hosts.message_seconds = 0.01;  // of the push, of the pull behind it, of committed, of the weights
  EXPECT_NEAR(Predict(job, hosts).step_seconds, without + 0.04, 0.011);
  hosts = Links(1e8);
  hosts.server_bytes_per_second = 1e8;
  EXPECT_NEAR(Predict(job, hosts).step_seconds, without + 0.004, 0.001);
}

TEST(PredictScheduling, LetsAnUrgentBlockOvertakeALateHugeOne) {
  const auto step = [](const std::string& scheduler) {
    return Predict(
               ReplayJob(ShippedProfile("vgg16", 0.05),
                         {"cluster.workers=4", "cluster.servers=2", "comm.segment_elements=32768",
                          "comm.partition_bytes=262144", "comm.credit_bytes=524288",
                          "comm.pull_credit_bytes=524288", "comm.scheduler=" + scheduler}),
               // The busiest link takes as long as the computation.
               Links(2 * 4 * 0.05 * 138357544 / 0.2965))
        .step_seconds;
  };
  const double fifo = step("FIFO");
  const double priority = step("PRIORITY");
  const double bytescheduler = step("BYTESCHEDULER");
  EXPECT_GT(fifo, 1.3 * bytescheduler);
  EXPECT_GE(fifo, priority);
  EXPECT_GE(priority, bytescheduler * 0.98);
  EXPECT_EQ(step("AUTO"), bytescheduler);
}

// Workers that drift apart cause a backlog of answers, which urgent blocks cannot pass if blocks
// are sent whole.
TEST(PredictScheduling, KnowsThatUnevenStreamsHoldUpWholeBlocks) {
  const auto job = [](const std::string& scheduler) {
    return ReplayJob(ShippedProfile("vgg16", 0.015),
                     {"cluster.workers=4", "cluster.servers=2", "comm.segment_elements=16384",
                      "comm.partition_bytes=65536", "comm.credit_bytes=262144",
                      "comm.pull_credit_bytes=262144", "comm.scheduler=" + scheduler});
  };
  const double link = 2 * 4 * 0.015 * 138357544 / 0.2965;
  const auto slower = [&](const std::string& scheduler) {
    return Predict(job(scheduler), TestbedHosts(link)).step_seconds /
           Predict(job(scheduler), Links(link)).step_seconds;
  };
  EXPECT_GT(slower("PRIORITY"), slower("BYTESCHEDULER"));
  EXPECT_GT(slower("BYTESCHEDULER"), 1);
}

TEST(SimulatedChunks, GrowWithPartsBytesAndWorkers) {
  const auto chunks = [](const char* partition, const char* workers) {
    const JobConfig job =
        ReplayJob(ProfileOf({{1 << 20, 1, 2}}), {partition, workers, "comm.segment_elements=1024"});
    return SimulatedChunks(job, TestbedHosts(1e6)).value();
  };
  const double one = chunks("comm.partition_bytes=65536", "cluster.workers=1");
  // 64 parts, each push and pull of 16 chunks and three messages; 19 steps.
  EXPECT_NEAR(one, 64 * 2 * (16 + 3) * 19, 1);
  EXPECT_NEAR(chunks("comm.partition_bytes=65536", "cluster.workers=8"), 8 * one, 1);
  EXPECT_GT(chunks("comm.partition_bytes=16384", "cluster.workers=1"), 2 * one);
}

TEST(PredictScheduling, RefusesWhatItDoesNotKnow) {
  const JobConfig job = ReplayJob(ProfileOf({{1000, 1, 2}}), {});
  EXPECT_FALSE(PredictScheduling(job, Links(0)).ok());
  SimulatedHosts hosts = Links(1e6);
  hosts.latency_seconds = -1;
  EXPECT_FALSE(PredictScheduling(job, hosts).ok());
  hosts.latency_seconds = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(PredictScheduling(job, hosts).ok());
  EXPECT_FALSE(FluidBound(job, hosts.latency_seconds).ok());
  JobConfig asynchronous = job;
  asynchronous.mutable_sync()->set_policy(SyncConfig::ASP);
  EXPECT_FALSE(PredictScheduling(asynchronous, Links(1e6)).ok());
}

// Pulls wait for the last push: 4 ms of transfers each way are exposed, except the push of the
// upper block during the lower one's backward pass.
TEST(PredictScheduling, MakesAllWeightsAtOnceWhereTheyAreClippedByOneNorm) {
  const ReplayProfile profile = ProfileOf({{100000, 3, 3}, {100000, 3, 3}});
  const double overlapped =
      Predict(ReplayJob(profile, {"comm.scheduler=FIFO"}), Links(1e8)).step_seconds;
  const double per_block =
      Predict(ReplayJob(profile, {"optimizer.clip=PER_BLOCK"}), Links(1e8)).step_seconds;
  const double global =
      Predict(ReplayJob(profile, {"optimizer.clip=GLOBAL"}), Links(1e8)).step_seconds;
  EXPECT_NEAR(per_block, overlapped, 1e-4) << "a partition is a block here";
  // Backward of both, the rest of the pushes, 4.25 ms for the first block's weights; the pull of
  // the second ends as the first's forward pass does, or later.
  EXPECT_GT(global, 0.006 + 2 * 0.004 + 0.003);
  EXPECT_GE(global, per_block);
}

TEST(PredictScheduling, WaitsForAStraggler) {
  const ReplayProfile profile = ProfileOf({{1000, 2, 3}, {1000, 2, 3}});
  for (const double unevenness : {1.0, 10.0}) {
    SimulatedHosts hosts = Links(1e9);
    hosts.unevenness = unevenness;
    const double usual = Predict(ReplayJob(profile, {"cluster.workers=3"}), hosts).step_seconds;
    const double slow = Predict(ReplayJob(profile, {"cluster.workers=3", "straggler.slowdown=4",
                                                    "straggler.virtual_worker=1"}),
                                hosts)
                            .step_seconds;
    EXPECT_NEAR(usual, 0.010, 5e-4);
    EXPECT_NEAR(slow, 0.040, 5e-4);
  }
}

// The worker with the straggler may run other virtual workers too: one of its two is slow.
TEST(PredictScheduling, KnowsWhoCarriesTheStraggler) {
  const ReplayProfile profile = ProfileOf({{1000, 2, 3}});
  const auto seconds = [&](const std::string& virtual_worker) {
    return Predict(ReplayJob(profile, {"cluster.workers=2", "cluster.virtual_workers=3",
                                       "straggler.slowdown=3",
                                       "straggler.virtual_worker=" + virtual_worker}),
                   Links(1e9))
        .step_seconds;
  };
  EXPECT_NEAR(seconds("0"), 0.005 + 0.015, 5e-4);
  EXPECT_NEAR(seconds("2"), 0.015, 5e-4) << "it is alone on the second worker";
}

TEST(PredictScheduling, EncodesBeforeItSends) {
  const JobConfig job = ReplayJob(ProfileOf({{100000, 1, 2}}), {});
  SimulatedHosts hosts = Links(1e8);
  const double plain = Predict(job, hosts).step_seconds;
  hosts.encode_bytes_per_second = 1e8;  // 4 ms
  EXPECT_NEAR(Predict(job, hosts).step_seconds, plain + 0.004, 1e-4);
  hosts.decode_bytes_per_second = 2e8;
  EXPECT_NEAR(Predict(job, hosts).step_seconds, plain + 0.006, 1e-4);
}

// ---- any job ----

JobConfig RandomJob(std::mt19937& random) {
  std::vector<TestBlock> blocks(1 + random() % 8);
  for (TestBlock& block : blocks) {
    block = {1 + random() % 30000, (random() % 1000) * 0.01, (random() % 1000) * 0.02};
  }
  const uint32_t workers = 1 + random() % 6;
  const auto set = [](const std::string& field, uint64_t value) {
    return absl::StrCat(field, "=", value);
  };
  const uint64_t partition = uint64_t{16384} << random() % 4;
  const char* const schedulers[] = {"FIFO", "PRIORITY", "BYTESCHEDULER"};
  JobConfig job = ReplayJob(
      ProfileOf(blocks),
      {set("cluster.workers", workers), set("cluster.virtual_workers", workers + random() % 7),
       set("comm.segment_elements", 1024), set("comm.partition_bytes", partition),
       set("comm.credit_bytes", partition * (1 + random() % 8)),
       set("comm.pull_credit_bytes", partition * (1 + random() % 8)),
       random() % 2 == 0 ? "comm.push_codec={}" : "comm.push_codec.bf16={}",
       "comm.push_codec.min_elements=0",
       std::string("comm.scheduler=") + schedulers[random() % 3]});
  const uint64_t segments = ReplayTrafficOf(job)->table.size();
  job.mutable_cluster()->set_servers(
      static_cast<uint32_t>(1 + random() % std::min<uint64_t>(segments, 4)));
  return job;
}

TEST(PredictScheduling, IsNeverFasterThanTheBound) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 100; ++trial) {
    const JobConfig job = RandomJob(random);
    const double link = 1e6 * (1 + random() % 100);
    const absl::StatusOr<SchedulingPrediction> bound = FluidBound(job, link);
    ASSERT_TRUE(bound.ok());
    SimulatedHosts hosts = Links(link);
    hosts.unevenness = 1 + random() % 5;
    const SchedulingPrediction prediction = Predict(job, hosts);
    EXPECT_GE(prediction.step_seconds, bound->step_seconds * (1 - 1e-9)) << trial;
    EXPECT_GE(bound->step_seconds, bound->compute_seconds * (1 - 1e-9));
  }
}

TEST(PredictScheduling, SaysTheSameWheneverAsked) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 20; ++trial) {
    const JobConfig job = RandomJob(random);
    const SchedulingPrediction one = Predict(job, TestbedHosts(1e7));
    const SchedulingPrediction other = Predict(job, TestbedHosts(1e7));
    EXPECT_EQ(one.step_seconds, other.step_seconds);
    EXPECT_EQ(one.spans.size(), other.spans.size());
  }
}

// Not exact: as with machines (Graham 1969), an order that follows from times may be worse when
// something is faster.
TEST(PredictScheduling, IsHardlySlowerWithMoreBandwidth) {
  std::mt19937 random(13);
  for (int trial = 0; trial < 40; ++trial) {
    const JobConfig job = RandomJob(random);
    const double slow = Predict(job, Links(1e7)).step_seconds;
    const double fast = Predict(job, Links(2e7)).step_seconds;
    EXPECT_LE(fast, slow * 1.02) << trial;
  }
}

TEST(ReplayCluster, SendsEveryByteOnceAndKeepsToTheCredit) {
  std::mt19937 random(14);
  for (int trial = 0; trial < 100; ++trial) {
    const JobConfig job = RandomJob(random);
    const ReplayTraffic traffic = *ReplayTrafficOf(job);
    ReplayCluster cluster(job, traffic, TestbedHosts(1e7));
    constexpr uint32_t kSteps = 3;
    cluster.Run(kSteps);
    uint64_t elements = 0;
    for (uint32_t b = 0; b < traffic.blocks(); ++b) elements += traffic.table.block_elements(b);
    const bool bf16 = job.comm().push_codec().has_bf16();
    EXPECT_EQ(cluster.pushed_bytes(),
              kSteps * traffic.kinds[0].virtual_workers * elements * (bf16 ? 2 : 4));
    EXPECT_EQ(cluster.pulled_bytes(), kSteps * elements * sizeof(float));
    const CommConfig& comm = job.comm();
    EXPECT_LE(cluster.peak_push_bytes(), std::max(comm.credit_bytes(), comm.partition_bytes()));
    EXPECT_LE(cluster.peak_answer_bytes(),
              std::max(comm.pull_credit_bytes() / job.cluster().servers(), comm.partition_bytes()));
  }
}

TEST(ReplayCluster, TracesAStepOfTheFirstWorker) {
  std::mt19937 random(15);
  for (int trial = 0; trial < 30; ++trial) {
    const JobConfig job = RandomJob(random);
    const ReplayTraffic traffic = *ReplayTrafficOf(job);
    ReplayCluster cluster(job, traffic, TestbedHosts(1e7));
    cluster.Run(2);
    const double step = cluster.begins()[2] - cluster.begins()[1];
    size_t passes = 0;
    double busy = 0;
    double last = 0;
    for (const SimulatedSpan& span : cluster.spans()) {
      EXPECT_GE(span.begin_seconds, std::max(last, -1e-9));
      EXPECT_LE(span.end_seconds, step + 1e-9);
      last = span.begin_seconds;
      if (span.kind == Kind::kPush || span.kind == Kind::kPull) continue;
      ++passes;
      busy += span.end_seconds - span.begin_seconds;
    }
    EXPECT_EQ(passes, 2 * traffic.blocks() * traffic.kinds[0].virtual_workers);
    EXPECT_NEAR(busy, traffic.compute_seconds(), 1e-9);
  }
}

// ---- size ----

TEST(PredictScheduling, KnowsThousandsOfHosts) {
  JobConfig job = ReplayJob(ShippedProfile("vgg16", 1), {"comm.segment_elements=65536"});
  job.mutable_cluster()->set_workers(4096);
  job.mutable_cluster()->set_virtual_workers(4096);
  job.mutable_cluster()->set_servers(1024);
  const double link = 1.25e9;
  const double bound = FluidBound(job, link)->step_seconds;
  EXPECT_GT(Predict(job, Links(link)).step_seconds, bound);
}

}  // namespace
}  // namespace tug
