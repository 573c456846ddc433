// SPDX-License-Identifier: Apache-2.0
// Import: shape and weights of a Hugging Face folder or a tug checkpoint.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpu/thread_pool.h"
#include "checkpoint/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "huggingface/gpt2_config.h"
#include "huggingface/gpt2_test_support.h"
#include "huggingface/weights_source.h"
#include "model/model.h"
#include "model/transformer/create_model.h"
#include "model/transformer/generator.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;
using Json = nlohmann::json;

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
  const auto model = CreateModel(options, pool);
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

TEST_F(HuggingFaceTest, GivesItsShapeToFieldsThatAJobLeavesUnset) {
  const auto tiny = WeightsSource::Open(kTiny);
  ASSERT_TRUE(tiny.ok()) << tiny.status();
  JobConfig job;
  job.mutable_data()->set_path("text");
  EXPECT_THAT(tiny->ShapeOverrides(job),
              ElementsAre("model.layers=2", "model.width=24", "model.heads=3", "model.mlp_width=40",
                          "model.context=32", "model.vocabulary=258"));
  job.mutable_model()->set_layers(3);
  EXPECT_THAT(tiny->ShapeOverrides(job), Not(Contains(HasSubstr("layers"))));

  const std::string folder = Path("with_tokenizer");
  fs::copy(kTiny, folder);
  fs::copy("data/testdata/gpt2", folder);
  const auto whole = WeightsSource::Open(folder);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->ShapeOverrides(job), AllOf(Contains("data.tokenizer=GPT2_BPE"),
                                                Contains("data.tokenizer_path=" + folder)));
  job.mutable_data()->set_tokenizer(DataConfig::BYTE);
  EXPECT_THAT(whole->ShapeOverrides(job), Not(Contains(HasSubstr("tokenizer"))));

  JobConfig trained = TinyJob();
  trained.mutable_data()->set_tokenizer(DataConfig::CHARACTER);
  const auto checkpoint = WeightsSource::Open(WriteCheckpoint(trained));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->ShapeOverrides(JobConfig()),
              AllOf(Contains("model.width=24"), Contains("data.tokenizer=CHARACTER")));
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

// The same weights in 16 bits under names without "transformer.", and an unused tensor.
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
        // 1.5 in either type; the first element of a tensor, 0x0001, differs between the types.
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

// Holds the fixture's tensors, for tests that write a changed model.safetensors.
class ChangedWeightsTest : public HuggingFaceTest {
 protected:
  struct Tensor {
    std::string dtype;
    std::vector<uint64_t> shape;
    std::string bytes;
  };

  ChangedWeightsTest() {
    const auto original = SafetensorsReader::Open(absl::StrCat(kTiny, "/model.safetensors"));
    EXPECT_TRUE(original.ok()) << original.status();
    for (const TensorView& tensor : original->tensors()) {
      tensors[tensor.name] = {
          tensor.dtype, tensor.shape,
          std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size())};
    }
  }

  // Writes a folder with `tensors` and these fields of config.json; returns its path.
  std::string Write(const Json& fields = Json::object()) {
    std::string folder = Changed(fields);
    Json header;
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", tensor.shape},
                      {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
      data += tensor.bytes;
    }
    const std::string text = header.dump();
    const uint64_t size = text.size();
    std::ofstream file(folder + "/model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), 8) << text << data;
    return folder;
  }

  static float& Value(Tensor& tensor, size_t element) {
    return reinterpret_cast<float*>(tensor.bytes.data())[element];
  }

  const std::string embedding_ = "transformer.wte.weight";
  const std::string head_ = "lm_head.weight";
  std::map<std::string, Tensor> tensors;
};

TEST_F(ChangedWeightsTest, AHeadThatDiffersFromTheEmbeddingIsKept) {
  tensors[head_] = tensors[embedding_];
  EXPECT_EQ(ErrorOfCheck(Write(), TinyJob()), "") << "the same values: tied";
  Value(tensors[head_], 1000) += 0.5f;
  for (const Json& tie : {Json(true), Json(nullptr)}) {  // null: removed, GPT2Config's default
    const std::string folder = Write({{"tie_word_embeddings", tie}});
    EXPECT_THAT(ErrorOfCheck(folder, TinyJob()),
                AllOf(HasSubstr("lm_head.weight differs from its wte.weight"),
                      HasSubstr("--set model.tied_head=false")));
    JobConfig untied = TinyJob();
    untied.mutable_model()->set_tied_head(false);
    ASSERT_EQ(ErrorOfCheck(folder, untied), "");
    const auto weights = ReadAll(*WeightsSource::Open(folder), LayoutOf(untied));
    const BlockTable blocks = LayoutOf(untied);
    const BlockSpec& last = blocks.blocks(blocks.blocks_size() - 1);
    size_t begin = 0;
    for (const TensorSpec& tensor : last.tensors()) {
      if (tensor.name() == head_) break;
      begin += ElementCount(tensor);
    }
    EXPECT_EQ(weights.back()[begin + 1000], Value(tensors[head_], 1000));
  }
}

TEST_F(ChangedWeightsTest, AHeadAloneIsTheEmbeddingOfATiedModel) {
  auto node = tensors.extract(embedding_);
  node.key() = head_;
  tensors.insert(std::move(node));
  const JobConfig job = TinyJob();
  const std::string folder = Write();
  ASSERT_EQ(ErrorOfCheck(folder, job), "");
  EXPECT_EQ(WeightsSource::Open(folder)->Notice(LayoutOf(job)), "initial weights from " + folder);
  EXPECT_EQ(ReadAll(*WeightsSource::Open(folder), LayoutOf(job)),
            ReadAll(*WeightsSource::Open(kTiny), LayoutOf(job)));
  JobConfig untied = job;
  untied.mutable_model()->set_tied_head(false);
  EXPECT_THAT(ErrorOfCheck(Write({{"tie_word_embeddings", false}}), untied),
              HasSubstr("no tensor transformer.wte.weight"));
}

TEST_F(ChangedWeightsTest, ATensorUnderBothNamesIsRefused) {
  tensors["wte.weight"] = tensors[embedding_];
  EXPECT_THAT(ErrorOfCheck(Write(), TinyJob()),
              HasSubstr("has both wte.weight and transformer.wte.weight"));
}

TEST_F(ChangedWeightsTest, NamesUnusedTensorsOfAnyType) {
  tensors["score.weight"] = {"F8_E4M3", {4}, std::string(4, '\1')};
  tensors["transformer.h.0.attn.bias"] = {"U8", {4}, std::string(4, '\1')};
  const JobConfig job = TinyJob();
  std::string folder = Write();
  ASSERT_EQ(ErrorOfCheck(folder, job), "");
  EXPECT_THAT(WeightsSource::Open(folder)->Notice(LayoutOf(job)),
              AllOf(HasSubstr("of which the model does not use score.weight (F8_E4M3)"),
                    Not(HasSubstr("attn.bias"))));
  EXPECT_EQ(WeightsSource::Open(kTiny)->Notice(LayoutOf(job)),
            std::string("initial weights from ") + kTiny);
  tensors[embedding_].dtype = "F8_E4M3";
  EXPECT_THAT(ErrorOfCheck(Write(), job),
              HasSubstr("transformer.wte.weight has type F8_E4M3: convert the weights to F32"));
}

TEST_F(ChangedWeightsTest, AWeightThatIsNotFiniteIsRefusedAndNamed) {
  const JobConfig job = TinyJob();
  const BlockTable blocks = LayoutOf(job);
  EXPECT_TRUE(WeightsSource::Open(kTiny)->CheckValues(blocks).ok());
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    ChangedWeightsTest::Value(tensors["transformer.h.1.mlp.c_fc.weight"], 77) = bad;
    const std::string folder = Write();
    ASSERT_EQ(ErrorOfCheck(folder, job), "");
    EXPECT_THAT(std::string(WeightsSource::Open(folder)->CheckValues(blocks).message()),
                AllOf(HasSubstr(folder), HasSubstr("element 77 of h.1.mlp.c_fc.weight")));
  }
}

TEST_F(HuggingFaceTest, ErrorsNameFileAndField) {
  const JobConfig job = TinyJob();
  EXPECT_THAT(ErrorOfCheck(Changed({{"n_layer", "two"}}), job),
              AllOf(HasSubstr("config.json: n_layer is \"two\""), HasSubstr("must be a number")));
  EXPECT_THAT(ErrorOfCheck(Changed({{"n_layer", 2}, {"model_type", "bert"}}), job),
              HasSubstr("model_type is \"bert\""));
  for (const char* name : {"gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh"}) {
    const auto read =
        ReadHfConfig(Changed({{"model_type", "gpt2"}, {"activation_function", name}}));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->activation(), ModelConfig::GELU);
  }
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
              AllOf(HasSubstr("no tensor lm_head.weight"), HasSubstr("tie_word_embeddings")));
  fs::resize_file(Path("changed") + "/model.safetensors", 5000);
  EXPECT_THAT(ErrorOfCheck(Path("changed"), job), HasSubstr("truncated"));
  fs::remove(Path("changed") + "/model.safetensors");
  EXPECT_THAT(ErrorOfCheck(Path("changed"), job), HasSubstr("model.safetensors is missing"));
  std::ofstream(Path("changed") + "/config.json") << "{";
  EXPECT_THAT(ErrorOfCheck(Path("changed"), job), HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace tug
