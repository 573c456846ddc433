// Against huggingface/testdata/tiny_gpt2, whose weights and logits are PyTorch's
// (deploy/compare/make_gpt2_fixture.py).

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "data/gpt2_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "huggingface/gpt2_config.h"
#include "huggingface/gpt2_export.h"
#include "huggingface/gpt2_weights.h"
#include "huggingface/weights_source.h"
#include "model/generator.h"
#include "model/layout.h"
#include "model/model.h"
#include "proto/job_config.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kTiny[] = "huggingface/testdata/tiny_gpt2";
constexpr uint32_t kBytes = 256;  // symbols of the BYTE tokenizer

std::string Contents(const std::string& path) {
  auto bytes = ReadWholeFile(path, 1 << 22);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *std::move(bytes);
}

// A resolved job with the fixture's model.
JobConfig TinyJob() {
  JobConfig job;
  job.mutable_data()->set_path("text");
  job.mutable_data()->set_resolved_symbols(kBytes);
  const auto model = ReadHfConfig(kTiny);
  EXPECT_TRUE(model.ok()) << model.status();
  *job.mutable_model() = *model;
  FillDefaults(job, 1);
  return job;
}

BlockTable LayoutOf(const JobConfig& job) {
  return ModelLayout(job.model(), job.data().resolved_symbols(), 0);
}

// All weights, by block, read in ranges that end anywhere.
std::vector<std::vector<float>> ReadAll(const WeightsSource& source, const BlockTable& blocks) {
  std::vector<std::vector<float>> weights;
  for (const BlockSpec& block : blocks.blocks()) {
    std::vector<float>& values = weights.emplace_back(ElementCount(block));
    const uint64_t step = 37 + values.size() / 5;
    for (uint64_t begin = 0; begin < values.size(); begin += step) {
      const uint64_t end = std::min<uint64_t>(values.size(), begin + step);
      const auto out = std::span(values).subspan(begin, end - begin);
      EXPECT_TRUE(source.ReadRange(block, begin, end, out).ok());
    }
  }
  return weights;
}

class HuggingFaceTest : public testing::Test {
 protected:
  HuggingFaceTest()
      : folder_((fs::path(testing::TempDir()) /
                 testing::UnitTest::GetInstance()->current_test_info()->name())
                    .lexically_normal()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

  // A copy of the fixture with fields of its config.json changed.
  std::string Changed(const Json& fields) {
    fs::create_directories(Path("changed"));
    for (const std::string name : {"/config.json", "/model.safetensors"}) {
      if (fs::exists(Path("changed") + name)) continue;
      std::ofstream(Path("changed") + name, std::ios::binary) << Contents(kTiny + name);
    }
    Json config = Json::parse(Contents(Path("changed") + "/config.json"));
    config.merge_patch(fields);
    std::ofstream(Path("changed") + "/config.json") << config.dump();
    return Path("changed");
  }

  // A checkpoint with the fixture's weights.
  std::string WriteCheckpoint(const JobConfig& job) {
    const BlockTable blocks = LayoutOf(job);
    const auto source = WeightsSource::Open(kTiny);
    EXPECT_TRUE(source.ok()) << source.status();
    const auto weights = ReadAll(*source, blocks);
    std::vector<std::vector<float>> zeros;
    std::vector<SegmentPart> parts;
    for (int i = 0; i < blocks.blocks_size(); ++i) {
      zeros.emplace_back(weights[i].size());
      parts.push_back(
          {blocks.blocks(i).name(), 0, weights[i].size(), weights[i], zeros.back(), zeros.back()});
    }
    fs::create_directories(Path("run"));
    const auto file = WriteLanePart(Path("run"), 3, 0, parts);
    EXPECT_TRUE(file.ok()) << file.status();
    Manifest manifest;
    *manifest.mutable_config() = job;
    *manifest.mutable_blocks() = blocks;
    manifest.set_version(3);
    ManifestFile& entry = *manifest.add_files();
    entry.set_name(file->name);
    entry.set_size_bytes(file->size_bytes);
    entry.set_xxh3(file->xxh3);
    const auto committed = CommitCheckpoint(Path("run"), manifest, Retention{.keep = 1});
    EXPECT_TRUE(committed.ok()) << committed.status();
    return *committed;
  }

  absl::StatusOr<ExportedGpt2> Export(const JobConfig& job, const std::string& name) {
    auto checkpoint = CheckpointReader::Open(WriteCheckpoint(job));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return ExportGpt2(*checkpoint, Path(name));
  }

  std::string ErrorOfCheck(const std::string& folder, const JobConfig& job) {
    const auto source = WeightsSource::Open(folder);
    if (!source.ok()) return std::string(source.status().message());
    return std::string(source->Check(job, LayoutOf(job)).message());
  }

  const std::string folder_;
};

TEST_F(HuggingFaceTest, ReadsTheShapeOfTheModel) {
  const auto config = ReadHfConfig(kTiny);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->layers(), 2u);
  EXPECT_EQ(config->width(), 24u);
  EXPECT_EQ(config->heads(), 3u);
  EXPECT_EQ(config->mlp_width(), 40u);
  EXPECT_EQ(config->context(), 32u);
  EXPECT_EQ(config->vocabulary(), 258u);
  EXPECT_TRUE(config->tied_head());
  EXPECT_EQ(config->activation(), ModelConfig::GELU);
}

TEST_F(HuggingFaceTest, LogitsAreThoseOfPyTorch) {
  const JobConfig job = TinyJob();
  const auto source = WeightsSource::Open(kTiny);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE(source->Check(job, LayoutOf(job)).ok()) << source->Check(job, LayoutOf(job));
  const auto weights = ReadAll(*source, LayoutOf(job));
  ThreadPool pool(1);
  ModelOptions options{job.model(), job.train(), kBytes, 0, 1, /*inference=*/true};
  const auto model = Model::Create(options, pool);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::span<const float>> views(weights.begin(), weights.end());
  for (int block = 0; block < (*model)->num_blocks(); ++block) {
    (*model)->BindWeights(block, {.fp32 = weights[static_cast<size_t>(block)]});
  }
  const auto generator = Generator::Create(job.model(), kBytes, views, pool);
  ASSERT_TRUE(generator.ok()) << generator.status();

  const Json expected = Json::parse(Contents(absl::StrCat(kTiny, "/logits.json")));
  const auto tokens = expected["tokens"].get<std::vector<int32_t>>();
  std::vector<float> logits(258);
  double worst = 0;
  for (const auto& [position, row] : expected["logits"].items()) {
    const std::span<const int32_t> seen(tokens.data(), std::stoul(position) + 1);
    (*model)->Logits(seen, logits);
    (*generator)->Reset();
    const std::span<const float> generated = (*generator)->Append(seen);
    const auto wanted = row.get<std::vector<double>>();
    ASSERT_EQ(wanted.size(), logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      worst =
          std::max({worst, std::abs(wanted[i] - logits[i]), std::abs(wanted[i] - generated[i])});
    }
  }
  printf("largest difference of a logit: %.2g\n", worst);
  EXPECT_LT(worst, 1e-4);
}

TEST_F(HuggingFaceTest, ExportGivesBackTheTensorsByteForByte) {
  const auto exported = Export(TinyJob(), "out");
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->tensors, 28u);
  EXPECT_THAT(exported->tokenizer, HasSubstr("vocab.json"));
  const auto before = SafetensorsReader::Open(absl::StrCat(kTiny, "/model.safetensors"));
  const auto after = SafetensorsReader::Open(Path("out/model.safetensors"));
  ASSERT_TRUE(before.ok() && after.ok());
  ASSERT_EQ(after->tensors().size(), before->tensors().size());
  for (const TensorView& tensor : before->tensors()) {
    const auto same = std::find_if(after->tensors().begin(), after->tensors().end(),
                                   [&](const TensorView& t) { return t.name == tensor.name; });
    ASSERT_NE(same, after->tensors().end()) << tensor.name;
    EXPECT_EQ(same->shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(same->bytes, tensor.bytes)) << tensor.name;
  }
  const auto config = ReadHfConfig(Path("out"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->SerializeAsString(), ReadHfConfig(kTiny)->SerializeAsString());
  const auto tokenizer = ReadGpt2Files(Path("out"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->SerializeAsString(), ByteTables().SerializeAsString());
  EXPECT_FALSE(fs::exists(Path("out.tmp")));
}

TEST_F(HuggingFaceTest, ExportHasTheTokenizerOfTheJob) {
  JobConfig job = TinyJob();
  BytePairTables tables = ByteTables();
  tables.add_tokens("ab");
  tables.add_tokens(std::string(kGpt2EndOfText));
  tables.add_merges('a');
  tables.add_merges('b');
  job.mutable_data()->set_tokenizer(DataConfig::GPT2_BPE);
  job.mutable_data()->set_resolved_tokenizer(tables.SerializeAsString());
  job.mutable_data()->set_resolved_symbols(258);
  ASSERT_TRUE(Export(job, "bpe/").ok());
  const auto read = ReadGpt2Files(Path("bpe"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), tables.SerializeAsString());
  EXPECT_EQ(Json::parse(Contents(Path("bpe/config.json")))["eos_token_id"], 257);
  EXPECT_EQ(Json::parse(Contents(Path("bpe/tokenizer_config.json")))["eos_token"], kGpt2EndOfText);

  job.mutable_data()->set_tokenizer(DataConfig::SENTENCEPIECE);
  job.mutable_data()->set_resolved_tokenizer("a model");
  EXPECT_THAT(Export(job, "pieces")->tokenizer, HasSubstr("tokenizer.model"));
  EXPECT_EQ(Contents(Path("pieces/tokenizer.model")), "a model");
  job.mutable_data()->set_tokenizer(DataConfig::CHARACTER);
  EXPECT_THAT(Export(job, "characters")->tokenizer,
              AllOf(HasSubstr("no file"), HasSubstr("CHARACTER")));
}

TEST_F(HuggingFaceTest, ExportRefusesWhatTheFormatCannotHold) {
  const std::string checkpoint = WriteCheckpoint(TinyJob());
  const auto refusal = [](const std::string& field, auto change) {
    ModelConfig config = TinyJob().model();
    change(config);
    const absl::Status status = CheckHfCanHold(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  };
  refusal("model.bias = false", [](ModelConfig& m) { m.set_bias(false); });
  refusal("model.norm = POST", [](ModelConfig& m) { m.set_norm(ModelConfig::POST); });
  refusal("model.family = ENCODER", [](ModelConfig& m) { m.set_family(ModelConfig::ENCODER); });
  refusal("model.external = true", [](ModelConfig& m) { m.set_external(true); });

  const auto reader = CheckpointReader::Open(checkpoint);
  fs::create_directories(Path("empty"));
  EXPECT_TRUE(ExportGpt2(*reader, Path("empty")).ok());
  EXPECT_THAT(std::string(ExportGpt2(*reader, Path("empty")).status().message()),
              AllOf(HasSubstr(Path("empty")), HasSubstr("name another one")));
}

TEST_F(HuggingFaceTest, ExportLeavesOtherFoldersAloneAndNothingOfItsOwnBeside) {
  fs::create_directories(Path("out.tmp"));
  std::ofstream(Path("out.tmp") + "/mine.txt") << "mine";
  fs::create_directories(Path("plain"));
  const auto exported = Export(TinyJob(), "out");
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(Contents(Path("out.tmp") + "/mine.txt"), "mine");
  EXPECT_EQ(fs::status(Path("out")).permissions(), fs::status(Path("plain")).permissions());
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("partial")));
  }
}

TEST_F(HuggingFaceTest, AnotherModelGivesTheFlagsToSet) {
  JobConfig job = TinyJob();
  EXPECT_EQ(ErrorOfCheck(kTiny, job), "");
  job.mutable_model()->set_layers(3);
  job.mutable_model()->set_tied_head(false);
  job.mutable_model()->set_vocabulary(0);
  EXPECT_THAT(ErrorOfCheck(kTiny, job),
              AllOf(HasSubstr(kTiny), HasSubstr("--set model.layers=2"),
                    HasSubstr("--set model.tied_head=true"),
                    HasSubstr("--set model.vocabulary=258"), Not(HasSubstr("model.width"))));
  job = TinyJob();
  job.mutable_model()->set_context(33);
  EXPECT_THAT(ErrorOfCheck(kTiny, job), HasSubstr("--set model.context=32"));
  job = TinyJob();
  job.mutable_data()->set_resolved_symbols(300);
  EXPECT_THAT(ErrorOfCheck(kTiny, job), AllOf(HasSubstr("258 symbols"), HasSubstr("300")));
}

TEST_F(HuggingFaceTest, TakesTheFirstPositionsForAJobWithLessContext) {
  JobConfig job = TinyJob();
  const BlockTable whole = LayoutOf(job);
  job.mutable_model()->set_context(10);
  ASSERT_EQ(ErrorOfCheck(kTiny, job), "");
  const auto source = WeightsSource::Open(kTiny);
  const auto all = ReadAll(*source, whole);
  auto part = ReadAll(*source, LayoutOf(job));
  ASSERT_EQ(part[0].size(), (258 + 10) * 24u);
  EXPECT_TRUE(std::equal(part[0].begin(), part[0].end(), all[0].begin()));
}

TEST_F(HuggingFaceTest, ReadsACheckpointOfOursAsItReadsTheFolder) {
  const JobConfig job = TinyJob();
  const std::string folder = WriteCheckpoint(job);
  for (const std::string& path : {folder, Path("run")}) {
    ASSERT_EQ(ErrorOfCheck(path, job), "");
    const auto source = WeightsSource::Open(path);
    EXPECT_EQ(ReadAll(*source, LayoutOf(job)), ReadAll(*WeightsSource::Open(kTiny), LayoutOf(job)));
  }
  JobConfig other = job;
  other.mutable_model()->set_heads(6);
  EXPECT_THAT(ErrorOfCheck(folder, other), HasSubstr("--set model.heads=3"));
  EXPECT_THAT(ErrorOfCheck(Path("nothing"), job),
              AllOf(HasSubstr("train.init_from " + Path("nothing")), HasSubstr("check the path")));
}

// The same weights with names without "transformer.", in two bytes, and a tensor we have no use
// for.
TEST_F(HuggingFaceTest, WidensHalvesAndTakesShortNames) {
  const std::string folder = Changed(Json::object());
  const auto original = SafetensorsReader::Open(absl::StrCat(kTiny, "/model.safetensors"));
  ASSERT_TRUE(original.ok());
  for (const std::string dtype : {"BF16", "F16"}) {
    Json header = {{"h.0.attn.bias", {{"dtype", "U8"}, {"shape", {4}}, {"data_offsets", {0, 4}}}}};
    std::string data(4, '\1');
    for (const TensorView& tensor : original->tensors()) {
      const size_t begin = data.size();
      for (size_t i = 0; i < tensor.bytes.size(); i += 4) {
        // 1.5 in either type; the first element of a tensor is what differs between them.
        const uint16_t bits = i == 0 ? 0x0001 : dtype == "F16" ? 0x3E00 : 0x3FC0;
        data.append(reinterpret_cast<const char*>(&bits), 2);
      }
      header[tensor.name.substr(std::string("transformer.").size())] = {
          {"dtype", dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const uint64_t size = text.size();
    std::ofstream file(folder + "/model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), 8) << text << data;
    file.close();
    const JobConfig job = TinyJob();
    ASSERT_EQ(ErrorOfCheck(folder, job), "");
    const auto weights = ReadAll(*WeightsSource::Open(folder), LayoutOf(job));
    EXPECT_EQ(weights[0][1], 1.5f);
    EXPECT_EQ(weights[0][0], dtype == "F16" ? std::ldexp(1.0f, -24) : std::ldexp(1.0f, -133));
  }
}

TEST_F(HuggingFaceTest, ErrorsNameFileAndField) {
  const JobConfig job = TinyJob();
  EXPECT_THAT(ErrorOfCheck(Changed({{"n_layer", "two"}}), job),
              AllOf(HasSubstr("config.json: n_layer is \"two\""), HasSubstr("should be a size")));
  EXPECT_THAT(ErrorOfCheck(Changed({{"n_layer", 2}, {"model_type", "bert"}}), job),
              HasSubstr("model_type is \"bert\""));
  EXPECT_THAT(ErrorOfCheck(Changed({{"model_type", "gpt2"}, {"activation_function", "silu"}}), job),
              HasSubstr("activation_function is \"silu\""));
  EXPECT_THAT(ErrorOfCheck(Changed({{"activation_function", "gelu_new"}, {"n_embd", 27}}), job),
              HasSubstr("--set model.width=27"));
  JobConfig wider = job;
  wider.mutable_model()->set_width(27);
  EXPECT_THAT(ErrorOfCheck(Path("changed"), wider),
              AllOf(HasSubstr("transformer.wte.weight has the shape [258,24], not [258,27]"),
                    HasSubstr("config.json")));
  JobConfig untied = job;
  untied.mutable_model()->set_tied_head(false);
  EXPECT_THAT(ErrorOfCheck(Changed({{"n_embd", 24}, {"tie_word_embeddings", false}}), untied),
              AllOf(HasSubstr("no tensor lm_head.weight"), HasSubstr("model.tied_head=true")));
  fs::resize_file(Path("changed") + "/model.safetensors", 5000);
  EXPECT_THAT(ErrorOfCheck(Path("changed"), job), HasSubstr("truncated"));
  fs::remove(Path("changed") + "/model.safetensors");
  EXPECT_THAT(ErrorOfCheck(Path("changed"), job), HasSubstr("model.safetensors is missing"));
  std::ofstream(Path("changed") + "/config.json") << "{";
  EXPECT_THAT(ErrorOfCheck(Path("changed"), job), HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace tug
