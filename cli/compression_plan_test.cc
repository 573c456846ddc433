#include "cli/compression_plan.h"

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

std::string Error(const CompressionArguments& arguments) {
  return std::string(PlanCompression(arguments).status().message());
}

JobConfig ConfigOf(const CompressionArguments& a, const std::string& name) {
  const auto plan = PlanCompression(a);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  for (const CompressionJob& job : plan->jobs) {
    if (job.name != name) continue;
    const auto config =
        ParseJobConfig(plan->training.job_text, name, JobOverrides(a, *plan, job, "text.txt"));
    EXPECT_TRUE(config.ok()) << config.status();
    return config.value_or(JobConfig());
  }
  ADD_FAILURE() << "no job " << name;
  return {};
}

std::vector<std::string> Names(const CompressionArguments& a) {
  const auto plan = PlanCompression(a);
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  if (!plan.ok()) return names;
  for (const CompressionJob& job : plan->jobs) names.push_back(job.name);
  return names;
}

TEST(PlanCompression, HasAJobForEachLinkAndCodecAndATrainingForEachCodec) {
  EXPECT_EQ(Names({}).size(), 3 * 7 + 7u);
  EXPECT_THAT(Names({.codecs = {"fp32", "top_k:0.01-ef/int8"}, .links = {"none", "100mbit"}}),
              ElementsAre("link-none-fp32", "link-none-top_k0.01-without-ef-pull-int8",
                          "link-100mbit-fp32", "link-100mbit-top_k0.01-without-ef-pull-int8",
                          "learning-fp32", "learning-top_k0.01-without-ef-pull-int8"));
}

TEST(PlanCompression, EveryCodecRunsWithEachLearningRate) {
  const CompressionArguments a{
      .parts = {"learning"}, .codecs = {"fp32", "bf16"}, .learning_rates = {1e-3, 0.02}};
  EXPECT_THAT(Names(a), ElementsAre("learning-fp32-rate0.001", "learning-fp32-rate0.02",
                                    "learning-bf16-rate0.001", "learning-bf16-rate0.02"));
  EXPECT_EQ(ConfigOf(a, "learning-bf16-rate0.02").optimizer().learning_rate(), 0.02);
}

TEST(PlanCompression, JobsAreOfTheirCodec) {
  const CompressionArguments a;
  const JobConfig fp32 = ConfigOf(a, "learning-fp32");
  EXPECT_EQ(fp32.comm().push_codec().codec_case(), PushCodecConfig::CODEC_NOT_SET);
  EXPECT_EQ(fp32.comm().pull_format(), CommConfig::FP32);
  EXPECT_EQ(fp32.cluster().workers(), 4u);
  EXPECT_EQ(fp32.cluster().virtual_workers(), 4u);
  EXPECT_EQ(fp32.train().steps(), 640u);
  EXPECT_GT(fp32.train().eval_interval(), 0u);
  const JobConfig top_k = ConfigOf(a, "learning-top_k0.01-without-ef-pull-int8");
  EXPECT_EQ(top_k.comm().push_codec().top_k().density(), 0.01);
  EXPECT_FALSE(top_k.comm().push_codec().error_feedback());
  EXPECT_EQ(top_k.comm().pull_format(), CommConfig::INT8);
  const CompressionArguments changes{.parts = {"learning"},
                                     .codecs = {"fp32", "fp32/changes:0.05"}};
  const JobConfig pulls = ConfigOf(changes, "learning-fp32-pull-changes0.05");
  EXPECT_EQ(pulls.comm().pull_format(), CommConfig::CHANGES);
  EXPECT_EQ(pulls.comm().pull_density(), 0.05);
  EXPECT_TRUE(ConfigOf(a, "learning-top_k0.01-pull-int8").comm().push_codec().error_feedback());
  EXPECT_GT(ConfigOf(a, "learning-one_bit-pull-int8").comm().push_codec().warmup_steps(), 0u)
      << "a training has it";
}

TEST(PlanCompression, StepsOnALinkAreAllOfTheCodec) {
  const CompressionArguments a;
  const JobConfig slow = ConfigOf(a, "link-100mbit-one_bit-pull-int8");
  EXPECT_EQ(slow.comm().push_codec().warmup_steps(), 0u);
  EXPECT_EQ(slow.train().steps(), 24u);
  EXPECT_EQ(slow.train().eval_interval(), 0u);
  EXPECT_EQ(slow.comm().impair().rate_mbit(), 100);
  EXPECT_FALSE(slow.comm().shared_memory());
  EXPECT_EQ(slow.cluster().lanes_per_server(), 1u);
  const JobConfig plain = ConfigOf(a, "link-none-fp32");
  EXPECT_EQ(plain.comm().impair().rate_mbit(), 0);
  EXPECT_TRUE(plain.comm().shared_memory());
  const JobConfig hosts = ConfigOf({.hosts = 6}, "link-100mbit-fp32");
  EXPECT_EQ(hosts.comm().impair().rate_mbit(), 0) << "the testbed's links have it";
  EXPECT_FALSE(hosts.comm().shared_memory());
}

TEST(PlanCompression, ATrainingThatIsMadeShorterKeepsItsSchedule) {
  const JobConfig config = ConfigOf({.train_steps = 320}, "learning-fp32");
  EXPECT_EQ(config.optimizer().warmup_steps(), 16u);
  EXPECT_EQ(config.optimizer().decay_steps(), 320u);
}

TEST(PlanCompression, HowCodecsAreAppliedIsTheUsers) {
  const CompressionArguments a{
      .overrides = {"comm.push_codec.min_elements=64", "comm.push_codec.vectors=true"}};
  const PushCodecConfig codec = ConfigOf(a, "link-none-int8-pull-int8").comm().push_codec();
  EXPECT_TRUE(codec.has_int8());
  EXPECT_EQ(codec.min_elements(), 64u);
  EXPECT_TRUE(codec.vectors());
}

TEST(PlanCompression, NamesTheOptionThatIsWrong) {
  EXPECT_THAT(Error({.parts = {"speed"}}), HasSubstr("--parts speed"));
  EXPECT_THAT(Error({.parts = {"links", "links"}}), HasSubstr("--parts links"));
  EXPECT_THAT(Error({.codecs = {"fp32", "zip"}}), HasSubstr("--codecs zip"));
  EXPECT_THAT(Error({.codecs = {"fp32", "INT8", "int8"}}), HasSubstr("named twice"));
  EXPECT_THAT(Error({.codecs = {"int8"}}), HasSubstr("name fp32 too"));
  EXPECT_THAT(Error({.codecs = {"fp32", "top_k:0.9"}}),
              AllOf(HasSubstr("--codecs top_k:0.9"), HasSubstr("density")));
  EXPECT_THAT(Error({.codecs = {"fp32", "qsgd+ef"}}), HasSubstr("--codecs qsgd+ef"));
  EXPECT_THAT(Error({.links = {"fast"}}), HasSubstr("--links fast"));
  EXPECT_THAT(Error({.links = {"none", "none"}}), HasSubstr("named twice"));
  EXPECT_THAT(Error({.hosts = 1}), HasSubstr("--hosts 1"));
  EXPECT_EQ(Error({.links = {"none"}, .hosts = 1}), "");
  EXPECT_THAT(Error({.workers = 0}), HasSubstr("--workers 0"));
  EXPECT_THAT(Error({.link_steps = 1}), HasSubstr("--link-steps 1"));
  EXPECT_THAT(Error({.learning_rates = {0}}), HasSubstr("--learning-rates 0"));
  EXPECT_THAT(Error({.learning_rates = {1e-3, 1e-3}}), HasSubstr("--learning-rates"));
  EXPECT_THAT(Error({.loss_margin = -1}), HasSubstr("--loss-margin -1"));
  EXPECT_THAT(Error({.job_file = "/nowhere"}), HasSubstr("/nowhere"));
  for (const char* ruled :
       {"comm.push_codec={int8 {}}", "comm.push_codec.top_k.density=0.1", "comm.push_codec.int8={}",
        "comm.push_codec.error_feedback=true", "comm.pull_format=INT8"}) {
    EXPECT_THAT(Error({.overrides = {ruled}}), HasSubstr("use --codecs")) << ruled;
  }
}

TEST(PlanCompression, IsOfTrainingsUnderBsp) {
  const std::string path = ::testing::TempDir() + "/job.textproto";
  std::ofstream(path) << "compute: REPLAY replay { profile: 'vgg16' }";
  EXPECT_THAT(Error({.job_file = path}), AllOf(HasSubstr(path), HasSubstr("a replay")));
  std::ofstream(path) << "data { path: 'text.txt' } sync { policy: ASP }";
  EXPECT_THAT(Error({.job_file = path}), AllOf(HasSubstr(path), HasSubstr("sync.policy")));
}

}  // namespace
}  // namespace tug
