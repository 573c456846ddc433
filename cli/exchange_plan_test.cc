#include "cli/exchange_plan.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_config.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Error(const ExchangeArguments& arguments) {
  return std::string(PlanExchange(arguments).status().message());
}

ExchangePlan Planned(const ExchangeArguments& a) {
  auto plan = PlanExchange(a);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : ExchangePlan{};
}

JobConfig ConfigOf(const ExchangeArguments& a, const std::string& name) {
  const ExchangePlan plan = Planned(a);
  for (const ExchangeJob& job : plan.jobs) {
    if (job.name != name) continue;
    const auto config = ParseJobConfig(plan.training.job_text, name, JobOverrides(a, plan, job));
    EXPECT_TRUE(config.ok()) << config.status();
    return config.value_or(JobConfig());
  }
  ADD_FAILURE() << "no job " << name;
  return {};
}

std::vector<std::string> Names(const ExchangeArguments& a) {
  std::vector<std::string> names;
  for (const ExchangeJob& job : Planned(a).jobs) names.push_back(job.name);
  return names;
}

TEST(PlanExchange, HasAJobForEachLinkSizeAndCase) {
  EXPECT_EQ(Names({}).size(), 11u);
  EXPECT_THAT(Names({.cases = {"servers:2", "ring"}, .links = {"none", "200mbit"}}),
              ElementsAre("none-servers2", "none-ring", "200mbit-servers2", "200mbit-ring"));
  EXPECT_THAT(Names({.cases = {"zero1"}, .megabytes = {0.5, 2}}),
              ElementsAre("none-0.5MB-zero1", "none-2MB-zero1"));
}

TEST(PlanExchange, JobsAreOfTheirCase) {
  const ExchangeArguments a;
  const JobConfig servers = ConfigOf(a, "none-servers3");
  EXPECT_EQ(servers.cluster().servers(), 3u);
  EXPECT_EQ(servers.cluster().workers(), 4u);
  EXPECT_EQ(servers.exchange(), JobConfig::PUSH_PULL);
  EXPECT_EQ(servers.placement().kind(), PlacementConfig::SERVERS);
  EXPECT_EQ(servers.train().steps(), 15u);
  EXPECT_EQ(servers.replay().time_scale(), 0) << "the exchange alone";
  EXPECT_EQ(servers.optimizer().clip(), OptimizerConfig::OFF);
  const JobConfig mixed = ConfigOf(a, "none-mixed2");
  EXPECT_EQ(mixed.cluster().servers(), 6u);
  EXPECT_EQ(mixed.placement().kind(), PlacementConfig::MIXED);
  const JobConfig ring = ConfigOf(a, "none-ring");
  EXPECT_EQ(ring.cluster().servers(), 4u);
  EXPECT_EQ(ring.exchange(), JobConfig::ALL_REDUCE);
  EXPECT_EQ(ring.collective().algorithm(), CollectiveConfig::RING);
  EXPECT_EQ(ConfigOf(a, "none-halving_doubling").collective().algorithm(),
            CollectiveConfig::HALVING_DOUBLING);
  EXPECT_EQ(ConfigOf(a, "none-zero3").placement().kind(), PlacementConfig::ZERO3);
}

// Sizes are the model's whatever the profile; all cases send the same segments.
TEST(PlanExchange, ReplaysAreScaledToSizeAndTime) {
  const ExchangeArguments a{
      .cases = {"servers:1", "zero1"}, .profile = "vgg16", .megabytes = {2}, .step_ms = 50};
  const JobConfig one = ConfigOf(a, "none-servers1"), beside = ConfigOf(a, "none-zero1");
  EXPECT_NEAR(one.replay().size_scale(), 2e6 / (4 * 138357544.0), 1e-6);
  EXPECT_GT(one.replay().time_scale(), 0);
  EXPECT_EQ(one.comm().segment_elements(), beside.comm().segment_elements());
  EXPECT_EQ(one.comm().credit_bytes(), beside.comm().credit_bytes());
  EXPECT_EQ(one.comm().pull_credit_bytes() * 4, beside.comm().pull_credit_bytes())
      << "of each server as much";
}

TEST(PlanExchange, HasHostsForTheCaseThatTakesMost) {
  EXPECT_EQ(Planned({}).hosts, 0u) << "no link has a rate";
  EXPECT_EQ(Planned({.links = {"none", "1gbit"}}).hosts, 8u) << "4 servers, 4 workers";
  EXPECT_EQ(Planned({.cases = {"zero1", "mixed:2"}, .links = {"1gbit"}}).hosts, 6u);
  EXPECT_EQ(Planned({.cases = {"ring"}, .links = {"1gbit"}}).hosts, 4u);
  EXPECT_THAT(Error({.links = {"1gbit"}, .workers = 150}), HasSubstr("hosts 300"));
}

// Twice what the slowest takes: 2 x 16 models of 100 MB over 12.5 MB/s.
TEST(PlanExchange, MessagesAreSentAgainOnlyAfterASlowStep) {
  const ExchangeArguments a{
      .cases = {"servers:1"}, .links = {"none", "100mbit"}, .workers = 16, .megabytes = {100}};
  EXPECT_GT(ConfigOf(a, "100mbit-servers1").comm().resend_ms(), 500'000u);
  EXPECT_EQ(ConfigOf(a, "none-servers1").comm().resend_ms(), 10'000u);
}

TEST(PlanExchange, AJobFileKeepsItsModelAndItsSchedule) {
  const std::string path = testing::TempDir() + "/job.textproto";
  std::ofstream(path) << "name: \"mine\" data { path: \"a.txt\" tokenizer: CHARACTER }\n"
                         "model { layers: 2 width: 64 heads: 4 context: 64 }\n"
                         "train { steps: 100 global_batch: 8 eval_interval: 10 }\n"
                         "optimizer { warmup_steps: 20 }\n";
  const ExchangeArguments a{.job_file = path, .cases = {"servers:1", "zero1"}, .workers = 2};
  const JobConfig config = ConfigOf(a, "none-zero1");
  EXPECT_EQ(config.model().layers(), 2u);
  EXPECT_EQ(config.train().steps(), 15u);
  EXPECT_EQ(config.train().eval_interval(), 0u);
  EXPECT_EQ(config.optimizer().warmup_steps(), 3u) << "a fifth of the steps";
  EXPECT_EQ(Planned(a).sizes.size(), 1u);
  EXPECT_EQ(Planned(a).sizes[0].bytes, 0);
  EXPECT_THAT(Error({.job_file = path, .megabytes = {4}}), HasSubstr("--megabytes"));
}

TEST(PlanExchange, RefusesWhatItCannotRunAndNamesTheOption) {
  EXPECT_THAT(Error({.cases = {"ring", "ring"}}), AllOf(HasSubstr("--cases"), HasSubstr("twice")));
  EXPECT_THAT(Error({.cases = {"tree"}}), HasSubstr("--cases tree"));
  EXPECT_THAT(Error({.cases = {"mixed:255"}}), HasSubstr("--cases mixed:255: servers 259"));
  EXPECT_THAT(Error({.links = {"fast"}}), HasSubstr("--links fast"));
  EXPECT_THAT(Error({.links = {}}), HasSubstr("--links"));
  EXPECT_THAT(Error({.workers = 1}), HasSubstr("--workers 1"));
  EXPECT_THAT(Error({.profile = "alexnet"}), HasSubstr("alexnet"));
  EXPECT_THAT(Error({.megabytes = {0}}), HasSubstr("--megabytes 0"));
  EXPECT_THAT(Error({.megabytes = {4, 4}}), HasSubstr("--megabytes: 4 is named twice"));
  EXPECT_THAT(Error({.steps = 2}), HasSubstr("--steps 2"));
  for (const char* set : {"exchange=ALL_REDUCE", "placement.kind=ZERO1", "cluster.servers=2",
                          "collective.algorithm=RING", "comm.push_codec.top_k={}",
                          "replay.size_scale=2", "train.steps=4", "comm.shared_memory=false"}) {
    EXPECT_THAT(Error({.overrides = {set}}), HasSubstr(std::string("--set ") + set));
  }
  EXPECT_THAT(Error({.overrides = {"placement.gradient_blocks=0"}}),
              HasSubstr("placement.gradient_blocks"));
}

}  // namespace
}  // namespace tug
