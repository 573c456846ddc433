// SPDX-License-Identifier: Apache-2.0
// Export: writes a checkpoint as a Hugging Face folder.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "data/text/gpt2_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "huggingface/gpt2_config.h"
#include "huggingface/gpt2_export.h"
#include "huggingface/gpt2_test_support.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;
using Json = nlohmann::json;

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

  BytePairTables::Named& added = *tables.add_added();
  added.set_token(258);
  added.set_text("<|user|>");
  added.set_special(true);
  added.set_normalized(false);
  tables.add_tokens();
  job.mutable_data()->set_resolved_tokenizer(tables.SerializeAsString());
  job.mutable_data()->set_resolved_symbols(259);
  EXPECT_THAT(Export(job, "added")->tokenizer, HasSubstr("added_tokens.json"));
  EXPECT_EQ(Json::parse(Contents(Path("added/added_tokens.json"))), Json({{"<|user|>", 258}}));
  const auto with_added = ReadGpt2Files(Path("added"));
  ASSERT_TRUE(with_added.ok()) << with_added.status();
  EXPECT_EQ(with_added->added(0).SerializeAsString(), added.SerializeAsString());

  job.mutable_data()->set_tokenizer(DataConfig::SENTENCEPIECE);
  SentencePieceModel pieces;
  for (const auto& [type, name] : {std::pair(SentencePieceModel::Trainer::BPE, "LlamaTokenizer"),
                                   {SentencePieceModel::Trainer::UNIGRAM, "TokenizersBackend"}}) {
    pieces.mutable_trainer_spec()->set_model_type(type);
    job.mutable_data()->set_resolved_tokenizer(pieces.SerializeAsString());
    EXPECT_THAT(Export(job, name)->tokenizer, HasSubstr("tokenizer.model"));
    EXPECT_EQ(Contents(Path(name) + "/tokenizer.model"), pieces.SerializeAsString());
    const Json settings = Json::parse(Contents(Path(name) + "/tokenizer_config.json"));
    EXPECT_EQ(settings["tokenizer_class"], name);
    EXPECT_EQ(settings["add_prefix_space"], false);
  }
  job.mutable_data()->set_tokenizer(DataConfig::CHARACTER);
  EXPECT_THAT(Export(job, "characters")->tokenizer,
              AllOf(HasSubstr("no file"), HasSubstr("CHARACTER")));
}

TEST_F(HuggingFaceTest, ExportRefusesWeightsThatAreNotFinite) {
  first_weight_ = std::numeric_limits<float>::quiet_NaN();
  const auto exported = Export(TinyJob(), "out");
  EXPECT_THAT(std::string(exported.status().message()),
              AllOf(HasSubstr("step 3"), HasSubstr("element 0 of wte.weight is nan")));
  EXPECT_FALSE(fs::exists(Path("out")));
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
              AllOf(HasSubstr(Path("empty")), HasSubstr("pass another one")));
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

TEST_F(HuggingFaceTest, ExportGoesWhereTheKernelFindsItsFolder) {
  fs::create_directories(Path("disk/sub"));
  fs::create_directory_symlink("disk/sub", Path("link"));
  const auto exported = Export(TinyJob(), "link/../out");
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_TRUE(fs::exists(Path("disk/out/model.safetensors")));
  EXPECT_FALSE(fs::exists(Path("out")));
}

}  // namespace
}  // namespace tug
