// SPDX-License-Identifier: Apache-2.0
#include "config/job_rules.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/field_path.h"
#include "config/job_config_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using testing::AllOf;
using testing::HasSubstr;

// Validation status of a job with random text.
absl::Status RandomWith(std::vector<std::string> overrides) {
  return Parse("data { random { samples: 10 symbols: 5 } } model { family: ENCODER }",
               std::move(overrides))
      .status();
}

// Paths of all numbers, bools and enums, except resolved_*.
void CollectPaths(const Descriptor& type, const std::string& prefix, std::set<std::string>& out) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    if (field.name().rfind("resolved_", 0) == 0) continue;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CollectPaths(*field.message_type(), path + ".", out);
    } else if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      out.insert(path);
    }
  }
}

TEST(FieldRules, StandAtEveryNumberBoolAndEnum) {
  std::set<std::string> fields;
  CollectPaths(*JobConfig::descriptor(), "", fields);
  std::set<std::string> ruled;
  for (const auto& [path, rule] : JobFields()) ruled.insert(path);
  EXPECT_EQ(ruled, fields);
}

TEST(FieldRules, EveryFieldHasADefaultInRange) {
  JobConfig config;
  config.mutable_data()->set_path("text");
  FillDefaults(config, 1);
  for (const auto& [path, rule] : JobFields()) {
    EXPECT_NE(rule.fallback_case(), FieldRule::FALLBACK_NOT_SET) << path;
    if (rule.has_default_()) {
      JobConfig job;
      ASSERT_TRUE(SetFieldFromText(job, path, rule.default_()).ok()) << path;
      EXPECT_TRUE(InRange(rule, FindField(job, path)->Number())) << path;
    }
    const auto ref = FindField(config, path);
    ASSERT_TRUE(ref.ok()) << ref.status();
    if (!Applies(config, path)) continue;
    EXPECT_TRUE(ref->IsSet()) << path;
  }
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
}

TEST(FieldRules, OnlyTheSetFieldOfAOneofHasDefaults) {
  const JobConfig config = *Parse("data { path: 'text' } comm { push_codec { top_k {} } }");
  EXPECT_EQ(config.comm().push_codec().top_k().density(), 0.01);
  EXPECT_FALSE(config.comm().push_codec().has_qsgd());
  EXPECT_EQ(Valid().comm().push_codec().codec_case(), PushCodecConfig::CODEC_NOT_SET);
}

// A value one step outside each end of each row is refused by an error that names field and range.
TEST(FieldRules, RefuseWhatIsOutsideAndNameFieldAndRange) {
  int refused = 0;
  for (const auto& [path, rule] : JobFields()) {
    const auto ref = FindField(Valid(), path);
    const bool whole = ref->field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
                       ref->field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
    const bool real = ref->field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    const bool ranged = (whole || real) && path != "seed";
    EXPECT_EQ(rule.lower_case() != FieldRule::LOWER_NOT_SET, ranged) << path;
    EXPECT_EQ(rule.upper_case() != FieldRule::UPPER_NOT_SET, ranged) << path;
    std::vector<double> outside;
    if (whole && rule.min() > 0) outside.push_back(rule.min() - 1);
    if (whole && rule.has_max() && rule.max() < 4e9) outside.push_back(rule.max() + 1);
    if (real) {
      outside.push_back(rule.has_above() ? rule.above() : std::nextafter(rule.min(), -1.0));
      outside.push_back(rule.has_below() ? rule.below() : std::nextafter(rule.max(), 1e300));
      outside.push_back(std::nan(""));
      outside.push_back(INFINITY);
    }
    if (const auto* values = ref->field->enum_type(); values != nullptr) {
      outside.push_back(values->value(values->value_count() - 1)->number() + 1);
    }
    for (const double value : outside) {
      JobConfig config = Valid();
      SetFieldFromNumber(config, path, value);
      FillDefaults(config);  // of the message, if it was not set before
      const std::string error = ErrorOf(Validate(config));
      EXPECT_THAT(error, AllOf(HasSubstr(path + " = "), HasSubstr("out of range"),
                               HasSubstr("; set " + path)));
      ++refused;
    }
  }
  EXPECT_GT(refused, 80);
  EXPECT_EQ(ErrorWith({"train.steps=0"}),
            "train.steps = 0 is out of range: 1..1e9 optimizer steps; set train.steps");
  EXPECT_THAT(ErrorWith({"model.dropout=1"}), HasSubstr("[0, 1)"));
}

struct Broken {
  std::vector<std::string> overrides;
  std::vector<std::string> names;
};

const std::vector<Broken> kRefused = {
    {{"cluster.workers=3", "cluster.virtual_workers=2"},
     {"cluster.workers = 3", "cluster.virtual_workers = 2"}},
    {{"data.path=", "model.external=true", "cluster.virtual_workers=2"},
     {"cluster.virtual_workers = 2", "model.external = true"}},
    {{"model.external=true"}, {"data.path = \"text\"", "model.external = true"}},
    {{"data.path=", "model.external=true", "train.init_from=gpt2"},
     {"train.init_from = \"gpt2\"", "model.external = true"}},
    {{"data.path=", "model.external=true", "data.random.samples=10"},
     {"data.random.samples = 10", "model.external = true"}},
    {{"data.path=", "data.random.samples=10", "data.random.symbols=5"},
     {"data.random.samples = 10", "model.family = DECODER"}},
    {{"data.path=", "data.random.samples=10", "model.family=ENCODER"},
     {"data.random.samples = 10", "data.random.symbols = 0"}},
    {{"data.random.samples=10", "data.random.symbols=5", "model.family=ENCODER"},
     {"data.random.samples = 10", "data.path = \"text\""}},
    {{"data.tokenizer=GPT2_BPE"},
     {"data.tokenizer = GPT2_BPE", "data.tokenizer_path = \"\"", "vocab.json"}},
    {{"data.tokenizer_path=gpt2"}, {"data.tokenizer_path = \"gpt2\"", "data.tokenizer = BYTE"}},
    {{"model.classes=2", "model.family=ENCODER_DECODER"},
     {"model.classes = 2", "model.family = ENCODER_DECODER"}},
    {{"train.recompute_layers=5"}, {"train.recompute_layers = 5", "model.layers = 4"}},
    {{"train.patience=3", "train.eval_interval=0"},
     {"train.patience = 3", "train.eval_interval = 0"}},
    {{"train.patience=3", "data.validation_fraction=0"},
     {"train.patience = 3", "data.validation_fraction = 0"}},
    {{"model.width=130"}, {"model.width = 130", "model.heads = 4"}},
    {{"model.context=65536", "model.heads=8"}, {"model.context = 65536", "model.heads = 8"}},
    {{"cluster.workers=3", "train.micro_batch=1"},
     {"train.global_batch = 8", "cluster.virtual_workers = 3"}},
    {{"train.micro_batch=3"}, {"train.micro_batch = 3", "train.global_batch = 8"}},
    {{"train.eval_samples=3", "cluster.workers=4"},
     {"train.eval_samples = 3", "cluster.virtual_workers = 4"}},
    {{"train.steps=50", "optimizer.warmup_steps=50"},
     {"optimizer.warmup_steps = 50", "train.steps = 50"}},
    {{"optimizer.decay_steps=100"},
     {"optimizer.decay_steps = 100", "optimizer.warmup_steps = 100"}},
    {{"optimizer.min_learning_rate=0.1"},
     {"optimizer.min_learning_rate = 0.1", "optimizer.learning_rate = 0.001"}},
    {{"exchange=ALL_REDUCE", "cluster.servers=2"},
     {"cluster.servers = 2", "exchange = ALL_REDUCE"}},
    {{"exchange=ALL_REDUCE", "cluster.lanes_per_server=2"},
     {"cluster.lanes_per_server = 2", "exchange = ALL_REDUCE"}},
    {{"exchange=ALL_REDUCE", "cluster.spare_servers=1"},
     {"cluster.spare_servers = 1", "exchange = ALL_REDUCE"}},
    {{"exchange=ALL_REDUCE", "sync.policy=SSP"}, {"sync.policy = SSP", "exchange = ALL_REDUCE"}},
    {{"exchange=ALL_REDUCE", "cluster.workers=2", "sync.replicas=2"},
     {"sync.replicas = 2", "exchange = ALL_REDUCE"}},
    {{"exchange=ALL_REDUCE", "comm.push_codec.int8={}"},
     {"exchange = ALL_REDUCE", "comm.push_codec"}},
    {{"exchange=ALL_REDUCE", "comm.pull_format=INT8"},
     {"comm.pull_format = INT8", "exchange = ALL_REDUCE"}},
    {{"exchange=ALL_REDUCE", "comm.impair.loss=0.1"},
     {"comm.impair.loss = 0.1", "exchange = ALL_REDUCE"}},
    {{"exchange=ALL_REDUCE", "placement.kind=ZERO1"},
     {"placement.kind = ZERO1", "exchange = ALL_REDUCE"}},
    {{"placement.host_weight_cache=true", "exchange=ALL_REDUCE"},
     {"placement.host_weight_cache = true", "exchange = ALL_REDUCE"}},
    {{"placement.host_weight_cache=true", "sync.policy=SSP"},
     {"placement.host_weight_cache = true", "sync.policy = SSP", "BSP"}},
    {{"placement.host_weight_cache=true", "comm.pull_format=CHANGES"},
     {"placement.host_weight_cache = true", "comm.pull_format = CHANGES", "INT8"}},
    {{"placement.kind=ZERO1", "cluster.servers=2"},
     {"cluster.servers = 2", "placement.kind = ZERO1"}},
    {{"placement.kind=ZERO2", "sync.policy=SSP"}, {"sync.policy = SSP", "placement.kind = ZERO2"}},
    {{"placement.kind=ZERO2", "cluster.workers=2", "sync.replicas=2"},
     {"sync.replicas = 2", "placement.kind = ZERO2"}},
    {{"placement.kind=ZERO3", "sync.local_steps=2"},
     {"sync.local_steps = 2", "placement.kind = ZERO3"}},
    {{"placement.kind=ZERO3", "data.path=", "model.external=true"},
     {"model.external = true", "placement.kind = ZERO3"}},
    {{"placement.kind=ZERO3", "train.recompute=UNIFORM"},
     {"train.recompute = UNIFORM", "placement.kind = ZERO3"}},
    {{"placement.kind=ZERO3", "comm.pull_format=CHANGES"},
     {"comm.pull_format = CHANGES", "placement.kind = ZERO3"}},
    {{"placement.kind=ZERO2", "placement.gradient_blocks=1"},
     {"placement.gradient_blocks = 1", "model.tied_head = true"}},
    {{"comm.segment_elements=5000"}, {"comm.segment_elements = 5000"}},
    {{"comm.credit_bytes=1048576"},
     {"comm.credit_bytes = 1048576", "comm.partition_bytes = 4194304"}},
    {{"comm.segment_elements=16777216"},
     {"comm.credit_bytes = 33554432", "comm.segment_elements = 16777216"}},
    {{"trace.steps=1", "trace.first_step=1001"}, {"trace.first_step = 1001", "train.steps = 1000"}},
    {{"fault.heartbeat_ms=2000"}, {"fault.failure_timeout_ms = 5000", "fault.heartbeat_ms = 2000"}},
    {{"data.path=", "compute=REPLAY", "model.external=true"},
     {"model.external = true", "compute = REPLAY"}},
    {{"compute=REPLAY"}, {"data.path = \"text\"", "compute = REPLAY"}},
    {{"data.path=", "compute=REPLAY", "data.random.samples=10"},
     {"data.random.samples = 10", "compute = REPLAY"}},
    {{"data.path=", "compute=REPLAY", "train.init_from=gpt2"},
     {"train.init_from = \"gpt2\"", "compute = REPLAY"}},
    {{"data.path=", "compute=REPLAY", "train.precision=BF16"},
     {"train.precision = BF16", "compute = REPLAY"}},
    {{"data.path=", "compute=REPLAY", "train.patience=2"},
     {"train.patience = 2", "compute = REPLAY"}},
    {{"data.path=", "compute=REPLAY"}, {"replay.profile = \"\"", "compute = REPLAY"}},
    {{"replay.profile=vgg16"}, {"replay.profile = \"vgg16\"", "compute = CPU"}},
    {{"sync.policy=BACKUP", "cluster.workers=2", "sync.backups=2"},
     {"sync.backups = 2", "cluster.virtual_workers = 2"}},
    {{"sync.delay_compensation=0.04", "optimizer.algorithm=SGD"},
     {"sync.delay_compensation = 0.04", "sync.policy = BSP"}},
    {{"sync.delay_compensation=0.04", "sync.policy=ASP"},
     {"sync.delay_compensation = 0.04", "optimizer.algorithm = ADAMW"}},
    {{"sync.record=ORDER"}, {"sync.record = ORDER", "sync.policy = BSP"}},
    {{"sync.record=ORDER", "sync.policy=ASP", "data.path=", "compute=REPLAY",
      "replay.profile=vgg16"},
     {"sync.record = ORDER", "compute = REPLAY"}},
    {{"sync.record=ORDER", "sync.policy=ASP", "device=CUDA"},
     {"sync.record = ORDER", "device = CUDA"}},
    {{"sync.record=ORDER", "sync.policy=ASP", "data.path=", "model.external=true"},
     {"sync.record = ORDER", "model.external = true"}},
    {{"sync.record=ORDER", "sync.policy=SSP", "comm.scheduler=AUTO"},
     {"sync.record = ORDER", "comm.scheduler = AUTO"}},
    {{"sync.policy=BACKUP", "cluster.workers=4", "data.path=", "model.external=true"},
     {"sync.policy = BACKUP", "model.external = true"}},
    {{"sync.policy=SSP", "data.path=", "model.external=true"},
     {"optimizer.clip = GLOBAL", "model.external = true"}},
    {{"sync.local_steps=4", "data.path=", "model.external=true"},
     {"sync.local_steps = 4", "model.external = true"}},
    {{"sync.local_steps=4", "sync.policy=ASP"}, {"sync.local_steps = 4", "sync.policy = ASP"}},
    {{"sync.local_steps=4", "optimizer.adamw.freeze_v_after=9"},
     {"sync.local_steps = 4", "optimizer.adamw.freeze_v_after = 9"}},
    {{"straggler.virtual_worker=1"},
     {"straggler.virtual_worker = 1", "cluster.virtual_workers = 1"}},
    {{"straggler.slowdown=2", "data.path=", "model.external=true"},
     {"straggler.slowdown = 2", "model.external = true"}},
    {{"straggler.pause_probability=0.5", "data.path=", "model.external=true"},
     {"straggler.pause_probability = 0.5", "model.external = true"}},
    {{"sync.replicas=2"}, {"sync.replicas = 2", "cluster.servers = 1"}},
    {{"sync.replicas=2", "cluster.servers=2", "sync.policy=BACKUP", "cluster.workers=2"},
     {"sync.replicas = 2", "sync.policy = BACKUP"}},
    {{"sync.replicas=2", "cluster.servers=2", "data.path=", "model.external=true"},
     {"sync.replicas = 2", "model.external = true"}},
    {{"sync.replicas=2", "cluster.servers=2", "sync.policy=ASP", "sync.record=ORDER"},
     {"sync.replicas = 2", "sync.record = ORDER"}},
    {{"fault.coordinator_timeout_ms=4000"},
     {"fault.coordinator_timeout_ms = 4000", "fault.failure_timeout_ms = 5000"}},
    {{"comm.push_codec.error_feedback=true"},
     {"comm.push_codec.error_feedback = true", "choose a codec"}},
    {{"comm.push_codec.natural={}", "comm.push_codec.error_feedback=true"},
     {"comm.push_codec.error_feedback = true", "natural"}},
    {{"comm.push_codec.qsgd.levels=5"}, {"comm.push_codec.qsgd.levels = 5", "127"}},
    {{"optimizer.algorithm=SGD", "optimizer.sgd.momentum=0", "comm.push_codec.dgc={}",
      "comm.push_codec.error_feedback=false"},
     {"comm.push_codec.error_feedback = false", "remove error_feedback"}},
    {{"comm.push_codec.dgc={}"},
     {"optimizer.algorithm = ADAMW", "comm.push_codec.dgc.momentum = 0.9", "SGD"}},
    {{"optimizer.algorithm=SGD", "comm.push_codec.dgc={}"},
     {"optimizer.sgd.momentum = 0.9", "comm.push_codec.dgc.momentum = 0.9"}},
    {{"optimizer.algorithm=SGD", "optimizer.sgd.momentum=0", "sync.local_steps=2",
      "comm.push_codec.dgc={}"},
     {"sync.local_steps = 2", "comm.push_codec.dgc.momentum = 0.9"}},
    {{"comm.push_codec.auto.candidates=int8,natural"},
     {"comm.push_codec.auto.candidates = ", "natural", "random_k, top_k_int8"}},
    {{"comm.push_codec.auto={}", "comm.push_codec.error_feedback=false"},
     {"comm.push_codec.error_feedback = false", "auto"}},
    {{"sync.policy=ASP", "sync.record=ORDER", "comm.pull_format=PULL_AUTO"},
     {"sync.record = ORDER", "comm.pull_format = PULL_AUTO"}},
    {{"sync.policy=ASP", "comm.push_codec.one_bit={}"},
     {"optimizer.adamw.freeze_v_after = ", "sync.policy = ASP"}},
    {{"sync.policy=ASP", "sync.record=ORDER", "comm.push_codec.top_k={}"},
     {"sync.record = ORDER", "comm.push_codec.error_feedback = true"}},
    {{"sync.policy=ASP", "sync.record=ORDER", "comm.pull_format=INT8"},
     {"sync.record = ORDER", "comm.pull_format = INT8"}},
    {{"sync.policy=SSP", "comm.pull_format=CHANGES"},
     {"comm.pull_format = CHANGES", "sync.policy = SSP"}},
    {{"data.path=", "model.external=true", "comm.pull_format=CHANGES"},
     {"comm.pull_format = CHANGES", "model.external = true"}},
};

TEST(ValidityRules, EveryRowRefusesItsCombinationNamingBothFields) {
  for (const Broken& broken : kRefused) {
    const std::string error = ErrorWith(broken.overrides);
    for (const std::string& name : broken.names) EXPECT_THAT(error, HasSubstr(name));
    EXPECT_THAT(error, Not(HasSubstr("\n")));
  }
  EXPECT_EQ(kRefused.size(), ValidityRules().size());
  for (const ValidityRule& rule : ValidityRules()) {
    EXPECT_FALSE(rule.broken(Valid())) << rule.field;
    EXPECT_TRUE(FindField(Valid(), rule.field).ok());
    if (rule.other_field == nullptr) continue;
    EXPECT_TRUE(FindField(Valid(), rule.other_field).ok());
  }
}

TEST(JobRules, WeightsThatArePulledTwiceComeInOneFormat) {
  EXPECT_THAT(ErrorWith({"placement.kind=ZERO3", "comm.pull_format=PULL_AUTO"}),
              AllOf(HasSubstr("comm.pull_format = PULL_AUTO"), HasSubstr("same weights twice")));
  EXPECT_EQ(ErrorWith({"placement.kind=ZERO3", "comm.pull_format=INT8"}), "");
}

TEST(JobRules, WeightsThatAHostKeepsComeInOneFormatForAllItsWorkers) {
  const std::string cache = "placement.host_weight_cache=true";
  EXPECT_THAT(ErrorWith({cache, "comm.pull_format=PULL_AUTO"}),
              AllOf(HasSubstr("comm.pull_format = PULL_AUTO"), HasSubstr("INT8")));
  EXPECT_EQ(ErrorWith({cache, "comm.pull_format=INT8", "placement.kind=ZERO3"}), "");
  EXPECT_EQ(ErrorWith({cache}), "");
}

TEST(JobRules, CandidatesOfAutoStandInTheOrderOfTheirBytesEachOnce) {
  for (const char* candidates : {"top_k_int8,int8", "int8,int8", "one_bit,int4,top_k"}) {
    EXPECT_THAT(ErrorWith({absl::StrCat("comm.push_codec.auto.candidates=", candidates)}),
                HasSubstr("most bytes first"))
        << candidates;
  }
}

TEST(JobRules, SignsOfAutoUnderAspWantAVThatGoesOn) {
  const std::string sync = "sync.policy=ASP", freeze = "optimizer.adamw.freeze_v_after=9";
  EXPECT_THAT(ErrorWith({sync, freeze, "comm.push_codec.auto={}"}),
              HasSubstr("optimizer.adamw.freeze_v_after = 9"));
  EXPECT_EQ(ErrorWith({sync, freeze, "comm.push_codec.auto.candidates=int8,top_k_int8"}), "");
  EXPECT_EQ(ErrorWith({sync, "comm.push_codec.auto={}"}), "");
}

// Values that the rules above forbid in one shape or schedule are valid in another.
TEST(ValidityRules, AllowWhatGoesTogether) {
  const std::vector<std::vector<std::string>> cases = {
      {"data.tokenizer=GPT2_BPE", "data.tokenizer_path=gpt2"},
      {"data.tokenizer=SENTENCEPIECE"},
      {"data.tokenizer=SENTENCEPIECE", "data.tokenizer_path=a.model"},
      {"model.family=ENCODER", "model.classes=2", "train.label_smoothing=0.1"},
      {"model.family=DECODER", "model.norm=POST", "train.z_loss=1e-4"},
      {"train.recompute=UNIFORM", "train.recompute_layers=4"},
      {"train.recompute=BLOCK"},
      {"sync.local_steps=4", "sync.policy=BACKUP", "cluster.workers=4"},
      {"optimizer.schedule=CONSTANT", "optimizer.decay_steps=1", "optimizer.min_learning_rate=1"},
      {"optimizer.schedule=INVERSE_SQRT", "optimizer.decay_steps=1"},
      {"train.patience=3"},
      {"comm.push_codec.qsgd.levels=15"},
      {"comm.push_codec.top_k={density: 0.02}", "comm.push_codec.error_feedback=false"},
      {"sync.policy=ASP", "sync.record=ORDER", "comm.push_codec.bf16={}"},
      {"optimizer.algorithm=SGD", "optimizer.sgd.momentum=0", "comm.push_codec.dgc={}"},
      {"comm.push_codec.power_sgd={}", "comm.push_codec.error_feedback=false"},
      {"comm.push_codec.auto={candidates: ' bf16, top_k'}", "comm.pull_format=PULL_AUTO"},
  };
  for (const auto& overrides : cases) EXPECT_EQ(ErrorWith(overrides), "") << overrides[0];
  EXPECT_EQ(ErrorOf(RandomWith({})), "");
}

TEST(ValidityRules, HoldADecayToItsScheduleWhereTheScheduleReadsIt) {
  for (const std::string schedule : {"COSINE", "LINEAR", "STABLE_DECAY"}) {
    EXPECT_THAT(ErrorWith({"optimizer.schedule=" + schedule, "optimizer.decay_steps=100"}),
                AllOf(HasSubstr("optimizer.decay_steps = 100"), HasSubstr("decay begins")));
  }
  for (const std::string schedule : {"LINEAR", "STABLE_DECAY", "INVERSE_SQRT"}) {
    EXPECT_THAT(ErrorWith({"optimizer.schedule=" + schedule, "optimizer.min_learning_rate=0.1"}),
                HasSubstr("optimizer.min_learning_rate = 0.1"));
  }
}

}  // namespace
}  // namespace tug
