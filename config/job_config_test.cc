// SPDX-License-Identifier: Apache-2.0
#include "config/job_config.h"

#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "config/field_path.h"
#include "config/job_config_test_support.h"
#include "config/job_rules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(JobConfig, ComputesDefaultsFromOtherFields) {
  auto config = Parse("data { path: 'x' } cluster { workers: 2 } train { steps: 50 }");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name(), "job");
  EXPECT_EQ(config->cluster().virtual_workers(), 2);
  EXPECT_EQ(config->train().micro_batch(), 4);
  EXPECT_EQ(config->optimizer().warmup_steps(), 5);
  EXPECT_EQ(config->optimizer().decay_steps(), 50);
  EXPECT_DOUBLE_EQ(config->optimizer().min_learning_rate(), 1e-4);
  EXPECT_EQ(Valid().optimizer().warmup_steps(), 100);
  EXPECT_EQ(Valid().model().norm(), ModelConfig::PRE);
  EXPECT_EQ(Valid().model().mlp_width(), 512);
  EXPECT_EQ(Valid().comm().pull_format(), CommConfig::FP32);
  config =
      Parse("data { path: 'x' } model { family: ENCODER width: 256 }", {"train.precision=BF16"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model().norm(), ModelConfig::POST);
  EXPECT_EQ(config->model().mlp_width(), 1024);
  EXPECT_EQ(config->comm().pull_format(), CommConfig::BF16);
}

// 1-bit Adam: full precision first, then signs with frozen mean squares.
TEST(JobConfig, ComputesDefaultsOfACodec) {
  const auto codec = [](std::vector<std::string> overrides) {
    auto config = Parse("data { path: 'x' } train { steps: 50 }", std::move(overrides));
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  };
  const JobConfig one_bit = codec({"comm.push_codec.one_bit={}"});
  EXPECT_TRUE(one_bit.comm().push_codec().error_feedback());
  EXPECT_EQ(one_bit.comm().push_codec().warmup_steps(), 10);
  EXPECT_EQ(one_bit.optimizer().adamw().freeze_v_after(), 10);
  EXPECT_EQ(one_bit.comm().push_codec().blocks(), "*");
  const JobConfig sgd = codec({"comm.push_codec.one_bit={}", "optimizer.algorithm=SGD"});
  EXPECT_EQ(sgd.comm().push_codec().warmup_steps(), 0);
  const JobConfig local = codec({"comm.push_codec.one_bit={}", "sync.local_steps=4"});
  EXPECT_EQ(local.optimizer().adamw().freeze_v_after(), 0);
  const JobConfig ssp = codec({"comm.push_codec.one_bit={}", "sync.policy=SSP"});
  EXPECT_EQ(ssp.comm().push_codec().warmup_steps(), 14) << "4 steps ahead";
  EXPECT_EQ(ssp.optimizer().adamw().freeze_v_after(), 10);
  const JobConfig top_k = codec({"comm.push_codec.top_k={}"});
  EXPECT_EQ(top_k.comm().push_codec().warmup_steps(), 20);
  EXPECT_EQ(top_k.optimizer().adamw().freeze_v_after(), 20);
  const JobConfig at_once = codec({"comm.push_codec.top_k={}", "comm.push_codec.warmup_steps=0"});
  EXPECT_EQ(at_once.optimizer().adamw().freeze_v_after(), 0);
  const JobConfig asp = codec({"comm.push_codec.top_k={}", "sync.policy=ASP"});
  EXPECT_EQ(asp.comm().push_codec().warmup_steps(), 0);
  const JobConfig of_links = codec({"comm.push_codec.auto={}"});
  EXPECT_EQ(of_links.comm().push_codec().warmup_steps(), 20);
  EXPECT_EQ(of_links.optimizer().adamw().freeze_v_after(), 20);
  const JobConfig of_links_asp = codec({"comm.push_codec.auto={}", "sync.policy=ASP"});
  EXPECT_EQ(of_links_asp.comm().push_codec().warmup_steps(), 0);
  EXPECT_EQ(of_links_asp.optimizer().adamw().freeze_v_after(), 0);
  const JobConfig int8 = codec({"comm.push_codec.int8={}"});
  EXPECT_FALSE(int8.comm().push_codec().error_feedback());
  EXPECT_EQ(int8.comm().push_codec().warmup_steps(), 0);
  EXPECT_EQ(int8.optimizer().adamw().freeze_v_after(), 0);
  const JobConfig dgc =
      codec({"comm.push_codec.dgc={}", "optimizer.algorithm=SGD", "optimizer.sgd.momentum=0"});
  EXPECT_TRUE(dgc.comm().push_codec().error_feedback());
  EXPECT_EQ(dgc.comm().push_codec().dgc().density_warmup_steps(), 5);
  EXPECT_TRUE(dgc.comm().push_codec().vectors()) << "whose momentum would be lacking";
  EXPECT_EQ(dgc.comm().push_codec().min_elements(), 0);
  const JobConfig power_sgd = codec({"comm.push_codec.power_sgd={}", "model.width=192"});
  EXPECT_TRUE(power_sgd.comm().push_codec().error_feedback());
  EXPECT_EQ(power_sgd.comm().push_codec().power_sgd().columns(), 192);
  EXPECT_FALSE(power_sgd.comm().push_codec().vectors());
  EXPECT_EQ(power_sgd.comm().push_codec().min_elements(), 1024);
  EXPECT_EQ(power_sgd.optimizer().adamw().freeze_v_after(), 20);
  const JobConfig chosen = codec({"comm.push_codec.auto={}"});
  EXPECT_EQ(chosen.comm().push_codec().auto_().candidates(), "int8,one_bit,top_k_int8");
  // The last codec that is set wins.
  const JobConfig last = codec({"comm.push_codec.int8={}", "comm.push_codec.top_k.density=0.1"});
  EXPECT_EQ(last.comm().push_codec().top_k().density(), 0.1);
  const JobConfig none = codec({"comm.push_codec.int8={}", "comm.push_codec={}"});
  EXPECT_EQ(none.comm().push_codec().codec_case(), PushCodecConfig::CODEC_NOT_SET);
}

TEST(JobConfig, TakesLanesFromTheCoresButNoMoreThanLayers) {
  const auto lanes = [](uint32_t cores, uint32_t servers, uint32_t layers) {
    JobConfig config;
    config.mutable_cluster()->set_servers(servers);
    config.mutable_model()->set_layers(layers);
    FillDefaults(config, cores);
    EXPECT_EQ(config.cluster().compute_threads(), 0);  // each worker decides for itself
    return config.cluster().lanes_per_server();
  };
  EXPECT_EQ(lanes(2, 1, 12), 1);
  EXPECT_EQ(lanes(64, 1, 12), 8);
  EXPECT_EQ(lanes(64, 2, 12), 4);
  EXPECT_EQ(lanes(64, 1, 4), 4);
  EXPECT_EQ(lanes(64, 3, 4), 1);
  EXPECT_EQ(lanes(128, 5, 4), 1);
}

TEST(JobConfig, WorkersOnGpusLeaveTheCoresToLanes) {
  JobConfig config;
  config.set_device(ClusterConfig::CUDA);
  config.mutable_cluster()->set_servers(2);
  config.mutable_model()->set_layers(12);
  FillDefaults(config, /*cores=*/16);
  EXPECT_EQ(config.cluster().lanes_per_server(), 6);
  EXPECT_EQ(config.cluster().compute_threads(), 2);
}

TEST(JobConfig, AnExternalModelNeedsNoText) {
  // Rules about batches and evaluations do not apply either.
  auto config = Parse(
      "model { external: true } cluster { workers: 3 } data { validation_fraction: 0 } "
      "train { eval_samples: 1 patience: 1 eval_interval: 0 }");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().virtual_workers(), 3);
}

// The profile defines the batches, so any number of virtual workers is valid.
TEST(JobConfig, AReplayNeedsNeitherTextNorABatchThatFits) {
  const auto config = Parse("compute: REPLAY replay { profile: 'vgg16' }",
                            {"cluster.workers=3", "train.eval_samples=2"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().compute_threads(), 1u);
  EXPECT_EQ(config->replay().time_scale(), 1);
  EXPECT_EQ(config->replay().size_scale(), 1);
}

TEST(JobConfig, TheConfigurationOfARunIsAJobFile) {
  const auto config = Parse(
      "data { path: 'x' resolved_symbols: 3 resolved_labels: 'a' } "
      "replay { resolved_profile { name: 'x' } }");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data().resolved_symbols(), 0u);
  EXPECT_TRUE(config->data().resolved_labels().empty());
  EXPECT_FALSE(config->replay().has_resolved_profile());
}

TEST(JobConfig, LoadsAFileAndNamesAMissingOne) {
  const std::string path = testing::TempDir() + "/job.textproto";
  std::ofstream(path) << "name: 'bible'  # a comment\ndata { path: 'text' tokenizer: CHARACTER }\n";
  const std::vector<std::string> overrides = {"train.steps=7"};
  auto config = LoadJobConfig(path, overrides);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name(), "bible");
  EXPECT_EQ(config->data().tokenizer(), DataConfig::CHARACTER);
  EXPECT_EQ(config->train().steps(), 7);

  std::ofstream(path) << "\xEF\xBB\xBFname: 'bible'\r\ndata { path: 'text' }";
  config = LoadJobConfig(path, {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name(), "bible") << "the mark and the ends of lines are an editor's";
  std::ofstream(path) << "\xFF\xFE"
                      << "n";
  EXPECT_THAT(ErrorOf(LoadJobConfig(path, {}).status()), HasSubstr("UTF-16"));

  const absl::Status missing = LoadJobConfig(path + ".not", {}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(missing), AllOf(HasSubstr(path + ".not"), HasSubstr("check the path")));
}

TEST(JobConfig, NamesPlaceAndFieldOfASyntaxError) {
  EXPECT_THAT(ErrorOf(Parse("data { path: 'x' }\ntrain {\n  stepz: 3\n}").status()),
              AllOf(HasSubstr("a.textproto:3:"), HasSubstr("stepz"), HasSubstr("global_batch")));
  EXPECT_THAT(ErrorOf(Parse("sync { policy: SOMETIMES }").status()),
              AllOf(HasSubstr("a.textproto:1:"), HasSubstr("SOMETIMES"), HasSubstr("tug help")));
  EXPECT_THAT(ErrorOf(Parse("train { steps: -1 }").status()), HasSubstr("a.textproto:1:"));
  EXPECT_THAT(ErrorOf(Parse("train {").status()), HasSubstr("a.textproto:1:"));
  EXPECT_THAT(ErrorOf(Parse(std::string(100000, '{')).status()), HasSubstr("a.textproto:1:"));
}

TEST(JobConfig, OverridesAnyFieldByPath) {
  auto config = Parse(
      "data { path: 'x' } train { steps: 5 }",
      {"name=other-1", "seed=18446744073709551615", "train.steps=20", "optimizer.adamw.beta2=0.95",
       "optimizer.clip=per_block", "model.bias=false", "data.path=a=b", "comm.scheduler=FIFO"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name(), "other-1");
  EXPECT_EQ(config->seed(), 18446744073709551615u);
  EXPECT_EQ(config->train().steps(), 20);
  EXPECT_EQ(config->optimizer().adamw().beta2(), 0.95);
  EXPECT_EQ(config->optimizer().clip(), OptimizerConfig::PER_BLOCK);
  EXPECT_FALSE(config->model().bias());
  EXPECT_EQ(config->data().path(), "a=b");
  EXPECT_EQ(config->comm().scheduler(), CommConfig::FIFO);
}

TEST(JobConfig, KnowsFifoAsWaitFreeBackPropagation) {
  const auto config = Parse("data { path: 'x' } train { steps: 5 }", {"comm.scheduler=wfbp"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->comm().scheduler(), CommConfig::FIFO);
  EXPECT_THAT(config->comm().ShortDebugString(), HasSubstr("scheduler: FIFO"));
  EXPECT_THAT(ErrorWith({"comm.scheduler=LIFO"}),
              HasSubstr("one of FIFO (WFBP), PRIORITY, BYTESCHEDULER, AUTO"));
}

TEST(JobConfig, OverrideErrorsNameFieldsTypesAndNames) {
  EXPECT_THAT(ErrorWith({"train.stepz=1"}),
              AllOf(HasSubstr("\"stepz\" in train"), HasSubstr("steps, global_batch")));
  EXPECT_THAT(ErrorWith({"trian.steps=1"}), AllOf(HasSubstr("\"trian\""), HasSubstr("cluster")));
  EXPECT_THAT(ErrorWith({"train.steps.x=1"}), HasSubstr("single value"));
  EXPECT_THAT(ErrorWith({"train=1"}), AllOf(HasSubstr("group of fields"), HasSubstr("steps")));
  EXPECT_THAT(ErrorWith({"comm.push_codec={bf61 {}}"}), HasSubstr("bf16, fp16, int8"));
  EXPECT_THAT(ErrorWith({"cluster.workers=-1"}),
              AllOf(HasSubstr("cluster.workers = -1"), HasSubstr("whole number in 0..4294967295")));
  EXPECT_THAT(ErrorWith({"cluster.workers=4294967296"}), HasSubstr("whole number"));
  EXPECT_THAT(ErrorWith({"model.dropout=lots"}), HasSubstr("not a number"));
  EXPECT_THAT(ErrorWith({"model.bias=maybe"}), HasSubstr("true or false"));
  EXPECT_THAT(ErrorWith({"optimizer.clip=some"}), HasSubstr("OFF, PER_BLOCK, GLOBAL"));
  EXPECT_THAT(ErrorWith({"train.steps"}), HasSubstr("--set path.to.field=value"));
  EXPECT_THAT(ErrorWith({"=3"}), HasSubstr("--set path.to.field=value"));
  EXPECT_THAT(ErrorWith({"name=a b"}), HasSubstr("not a job name"));
  EXPECT_THAT(ErrorWith({"data.path="}), HasSubstr("data.path is not set"));
  EXPECT_THAT(ErrorWith({"data.resolved_symbols=3"}), HasSubstr("filled in by the coordinator"));
}

TEST(JobConfig, ValidateRefusesAConfigurationWithoutDefaults) {
  JobConfig config;
  config.set_name("x");
  config.mutable_data()->set_path("x");
  EXPECT_THAT(ErrorOf(Validate(config)), HasSubstr("seed is not set"));
}

TEST(Fingerprint, ChangesWithWhatMattersOnly) {
  const JobConfig config = Valid();
  for (const auto& [path, rule] : JobFields()) {
    if (!Applies(config, path)) continue;
    JobConfig other = config;
    const double value = FindField(config, path)->Number();
    SetFieldFromNumber(other, path, value == 0 ? 1 : 0);
    const bool machine =
        std::set<std::string>{"cluster.lanes_per_server", "cluster.compute_threads",
                              "cluster.pin_threads",      "trace.steps",
                              "trace.first_step",         "security.mode"}
            .contains(path) ||
        absl::StartsWith(path, "watch.");
    EXPECT_EQ(Fingerprint(other) == Fingerprint(config), machine) << path;
  }
  JobConfig encoded = config;
  encoded.mutable_comm()->mutable_push_codec()->mutable_int8();
  EXPECT_NE(Fingerprint(encoded), Fingerprint(config));
  JobConfig resolved = config;
  resolved.mutable_data()->set_resolved_alphabet("abc");
  resolved.mutable_data()->set_resolved_symbols(3);
  resolved.mutable_data()->set_resolved_fingerprint(9);
  resolved.mutable_data()->set_resolved_tokenizer("pieces");
  resolved.mutable_data()->add_resolved_labels("good");
  resolved.mutable_replay()->mutable_resolved_profile()->add_blocks()->set_name("fc6");
  EXPECT_EQ(Fingerprint(resolved), Fingerprint(config));
  resolved.mutable_data()->set_path("elsewhere");
  EXPECT_NE(Fingerprint(resolved), Fingerprint(config));
}

}  // namespace
}  // namespace tug
