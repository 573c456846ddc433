// SPDX-License-Identifier: Apache-2.0
#include "data/line_sampler.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/line_text.h"
#include "data/random_sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int32_t kBegin = 256;  // BYTE has symbols 0 .. 255
constexpr int32_t kEnd = 257;

class LineSamplerTest : public testing::Test {
 protected:
  LineSamplerTest() {
    base_ =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    config_.set_seed(11);
    config_.mutable_data()->set_path(base_ + ".txt");
    config_.mutable_data()->set_tokenizer(DataConfig::BYTE);
    config_.mutable_data()->set_validation_fraction(0.1);
    config_.mutable_model()->set_family(ModelConfig::ENCODER);
    config_.mutable_model()->set_context(8);
    config_.mutable_train()->set_global_batch(6);
    config_.mutable_cluster()->set_virtual_workers(3);
  }

  absl::Status Prepare(const std::string& text) {
    std::filesystem::remove(base_ + ".bin");
    std::ofstream(base_ + ".txt", std::ios::binary) << text;
    const auto info = PrepareTokenFile(config_.data(), base_ + ".bin", TextFormOf(config_.model()));
    if (!info.ok()) return info.status();
    info->Resolve(*config_.mutable_data());
    file_ = *TokenFile::Open(base_ + ".bin");
    EXPECT_TRUE(file_->VerifyContents().ok());
    return absl::OkStatus();
  }

  const LineSampler& Get(const std::string& text) {
    EXPECT_TRUE(Prepare(text).ok()) << Prepare(text);
    auto sampler = MakeSampler(config_, &*file_);
    EXPECT_TRUE(sampler.ok()) << sampler.status();
    sampler_ = *std::move(sampler);
    return dynamic_cast<const LineSampler&>(*sampler_);
  }

  // Text of `lines` lines "<i mod 3>\t<i>".
  static std::string Numbered(int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) absl::StrAppend(&text, i % 3, "\t", i, "\n");
    return text;
  }

  std::string base_;
  JobConfig config_;
  std::optional<TokenFile> file_;
  std::unique_ptr<Sampler> sampler_;
};

TEST_F(LineSamplerTest, ReadsEachTrainingLineOnceAnEpochAndNoneOfValidation) {
  const LineSampler& sampler = Get(Numbered(200));
  ASSERT_EQ(sampler.train_samples(), 180u);
  ASSERT_EQ(sampler.validation_samples(), 20u);
  std::set<uint64_t> validation;
  for (uint64_t i = 0; i < 20; ++i) validation.insert(sampler.ValidationLine(i));
  ASSERT_EQ(validation.size(), 20u);
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < 180; ++i) order.push_back(sampler.TrainingLine(epoch, i));
    orders.insert(order);
    std::set<uint64_t> all(order.begin(), order.end());
    all.insert(validation.begin(), validation.end());
    ASSERT_EQ(all.size(), 200u);
  }
  EXPECT_EQ(orders.size(), 4u) << "another order each epoch";
}

TEST_F(LineSamplerTest, TheSplitIsTheTextsAndNotTheSeeds) {
  std::set<std::vector<uint64_t>> splits, orders;
  for (const uint64_t seed : {1u, 2u}) {
    config_.set_seed(seed);
    const LineSampler& sampler = Get(Numbered(200));
    std::vector<uint64_t> split, order;
    for (uint64_t i = 0; i < 20; ++i) split.push_back(sampler.ValidationLine(i));
    for (uint64_t i = 0; i < 180; ++i) order.push_back(sampler.TrainingLine(0, i));
    splits.insert(split);
    orders.insert(order);
  }
  EXPECT_EQ(splits.size(), 1u);
  EXPECT_EQ(orders.size(), 2u);
}

TEST_F(LineSamplerTest, ASortedTextHasAllLabelsInBothSplits) {
  std::string text;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&text, i / 100, "\tx", i, "\n");
  const LineSampler& sampler = Get(text);
  std::map<uint32_t, int> validation;
  for (uint64_t i = 0; i < 30; ++i) ++validation[file_->Line(sampler.ValidationLine(i)).second];
  ASSERT_EQ(validation.size(), 3u);
  for (const auto& [label, count] : validation) EXPECT_GE(count, 3) << label;
}

TEST_F(LineSamplerTest, ALabelledLineIsBeginAndTextAndPadding) {
  config_.mutable_data()->set_validation_fraction(0);
  const LineSampler& sampler = Get("b\tword\na\ta longer one\r\n\nb\tc d");
  EXPECT_THAT(config_.data().resolved_labels(), ElementsAre("a", "b"));
  EXPECT_EQ(config_.data().resolved_symbols(), 258u);
  ASSERT_EQ(sampler.train_samples(), 3u);
  std::map<std::vector<int32_t>, std::pair<int32_t, int32_t>> seen;  // values: length, label
  SampleBatch batch;
  for (uint32_t v = 0; v < 3; ++v) {
    sampler.Fill(0, v, 0, 1, batch);
    seen[batch.tokens] = {batch.lengths.at(0), batch.targets.at(0)};
  }
  const std::map<std::vector<int32_t>, std::pair<int32_t, int32_t>> expected = {
      {{kBegin, 'w', 'o', 'r', 'd', 0, 0, 0}, {5, 1}},
      {{kBegin, 'a', ' ', 'l', 'o', 'n', 'g', 'e'}, {8, 0}},
      {{kBegin, 'c', ' ', 'd', 0, 0, 0, 0}, {4, 1}}};
  EXPECT_EQ(seen, expected);
  EXPECT_THAT(sampler.notice(), HasSubstr("1 of 3 lines are truncated to model.context = 8"));
  EXPECT_THAT(sampler.notice(), HasSubstr("longest has 13"));
}

TEST_F(LineSamplerTest, ALabelThatIsTooLongIsNamedByFileAndLine) {
  const std::string longest(kMaxLabelBytes, 'x');
  EXPECT_TRUE(Prepare("a\tb\n" + longest + "\tb\na\tb\n").ok());
  config_.mutable_data()->clear_resolved_labels();
  EXPECT_THAT(std::string(Prepare("a\tb\n" + longest + "x\tb\n").message()),
              AllOf(HasSubstr(".txt: line 2: its label"), HasSubstr("257 bytes"),
                    HasSubstr("shorten it to 256")));
}

TEST_F(LineSamplerTest, APairIsSourceAndShiftedTarget) {
  config_.mutable_data()->set_validation_fraction(0);
  config_.mutable_model()->set_family(ModelConfig::ENCODER_DECODER);
  config_.mutable_model()->set_context(4);
  config_.mutable_train()->set_global_batch(3);
  const LineSampler& sampler = Get("ab\tba\nabcdef\tx\ny\tabcd\n");
  std::map<std::vector<int32_t>, SampleBatch> seen;
  SampleBatch batch;
  for (uint32_t v = 0; v < 3; ++v) {
    sampler.Fill(0, v, 0, 1, batch);
    seen[batch.tokens] = batch;
  }
  ASSERT_EQ(seen.size(), 3u);
  const SampleBatch& shorter = seen[{'a', 'b', 0, 0}];
  EXPECT_THAT(shorter.lengths, ElementsAre(2));
  EXPECT_THAT(shorter.decoder_tokens, ElementsAre(kBegin, 'b', 'a', 0));
  EXPECT_THAT(shorter.targets, ElementsAre('b', 'a', kEnd, kNoSampleTarget));
  const SampleBatch& long_source = seen[{'a', 'b', 'c', 'd'}];
  EXPECT_THAT(long_source.lengths, ElementsAre(4));
  EXPECT_THAT(long_source.targets, ElementsAre('x', kEnd, kNoSampleTarget, kNoSampleTarget));
  const SampleBatch& long_target = seen[{'y', 0, 0, 0}];
  EXPECT_THAT(long_target.decoder_tokens, ElementsAre(kBegin, 'a', 'b', 'c'));
  EXPECT_THAT(long_target.targets, ElementsAre('a', 'b', 'c', 'd')) << "no end: it was cut off";
}

TEST_F(LineSamplerTest, AStepIsTheSameHoweverVirtualWorkersDivideItAndWhenever) {
  std::set<std::vector<int32_t>> steps;
  for (const uint32_t virtual_workers : {1u, 2u, 3u, 6u}) {
    config_.mutable_cluster()->set_virtual_workers(virtual_workers);
    const LineSampler& sampler = Get(Numbered(50));
    std::vector<int32_t> step;
    SampleBatch batch;
    for (uint32_t v = 0; v < virtual_workers; ++v) {
      sampler.Fill(1000, v, 0, sampler.share(), batch);
      step.insert(step.end(), batch.tokens.begin(), batch.tokens.end());
    }
    steps.insert(step);
  }
  EXPECT_EQ(steps.size(), 1u);
}

TEST_F(LineSamplerTest, LinesAcrossPiecesAndFilesAreWhole) {
  const std::string folder = base_ + ".folder";
  std::filesystem::create_directories(folder);
  const std::string wide(700'000, 'w');  // longer than half a piece (1 MiB)
  std::ofstream(folder + "/1") << "a\t" << wide << "\nb\t" << wide << "\nc\tlast of 1";
  std::ofstream(folder + "/2") << "d\tfirst of 2\n";
  std::vector<std::string> lines;
  ASSERT_TRUE(
      ForEachLine(*TextSource::Open(folder), TextForm::kLabelledLines, [&](const TextLine& line) {
        lines.push_back(std::string(line.first) + std::to_string(line.second.size()));
        return absl::OkStatus();
      }).ok());
  EXPECT_THAT(lines, ElementsAre("a700000", "b700000", "c9", "d10"));
}

// Marks, line ends and white space that editors on other systems leave: labels and texts are
// unchanged.
TEST_F(LineSamplerTest, LabelsAndTextsDoNotDependOnEndsOfLinesMarksAndSpaces) {
  const std::string plain = "neg\tbad one\npos\tgood\n";
  ASSERT_TRUE(Prepare(plain).ok());
  const uint64_t fingerprint = config_.data().resolved_fingerprint();
  for (const std::string& text :
       {"\xEF\xBB\xBF" + plain, std::string("neg\tbad one\npos\tgood"),
        std::string("neg\tbad one\r\npos\tgood\r\n"), std::string("neg\tbad one\r\npos\tgood\r"),
        std::string("neg\tbad one\r\r\npos\tgood\r\r\n"),
        std::string("neg \t bad one  \n\n  \n\t\n\r\n pos\tgood \n")}) {
    config_.mutable_data()->clear_resolved_labels();
    ASSERT_TRUE(Prepare(text).ok()) << Prepare(text);
    EXPECT_THAT(config_.data().resolved_labels(), ElementsAre("neg", "pos")) << text;
    EXPECT_EQ(config_.data().resolved_fingerprint(), fingerprint) << text;
  }
  config_.mutable_data()->set_tokenizer(DataConfig::CHARACTER);
  EXPECT_THAT(std::string(Prepare("\xEF\xBB\xBF"
                                  "a\tb\na\t b\xFF")
                              .message()),
              HasSubstr("byte 0xFF at offset 11"))
      << "in the file";
}

TEST_F(LineSamplerTest, BadLinesAreNamedWithTheRemedy) {
  const auto error = [this](const std::string& text) {
    return std::string(Prepare(text).message());
  };
  EXPECT_THAT(error("a\tx\n\nno tab here\n"),
              AllOf(HasSubstr(".txt: line 3 has no tab"), HasSubstr("label<TAB>text")));
  EXPECT_THAT(error("\ttext\n"), HasSubstr("line 1 is empty before its tab"));
  EXPECT_THAT(error("a\tx\nlabel\t"), HasSubstr("line 2 is empty after its tab"));
  EXPECT_THAT(error("\n\n"), HasSubstr("has no lines"));
  EXPECT_THAT(error("a\tx\nb\ty\tCC-BY\n"), HasSubstr("line 2 has a second tab"));
  EXPECT_THAT(error("a\tx\nb\ty\t\n"), HasSubstr("line 2 has a second tab"));
  EXPECT_THAT(error("a\tb\tc\td\n"), HasSubstr("line 1 has a second tab"));
  EXPECT_THAT(error("Label\tText\na\tx\n"), HasSubstr("line 1 is a header of column names"));
  EXPECT_THAT(error("\xEF\xBB\xBFsentence\tlabel\r\na\tx\n"),
              HasSubstr("line 1 is a header of column names"));
  EXPECT_THAT(error("a\tx\n\"a\"\ty\n"), HasSubstr("line 2 has its label in quotes"));
  EXPECT_THAT(error("a\tx\n\xEF\xBB\xBF"
                    "a\ty\n"),
              HasSubstr("line 2 begins with a byte order"));
  EXPECT_THAT(error("a\tx\rb\n"), HasSubstr("line 1 has a carriage return inside"));
  EXPECT_THAT(error(std::string("a\tx\nb\0\ty\n", 9)), HasSubstr("has a NUL byte at offset 5"));
  EXPECT_THAT(error("\xFF\tx\n"), HasSubstr("line 1: its label is not UTF-8"));
  config_.mutable_model()->set_family(ModelConfig::ENCODER_DECODER);
  EXPECT_THAT(error("source\n"), HasSubstr("source<TAB>target"));
  EXPECT_THAT(error("x\ty\n\nhelp run.\tplehe nure !\tCC-BY 2.0\n"),
              AllOf(HasSubstr("line 3 has a second tab"), HasSubstr("source<TAB>target")));
  EXPECT_THAT(error("src\ttgt\nx\ty\n"), HasSubstr("line 1 is a header of column names"));
  EXPECT_EQ(error("\"Go!\"\t\"Va !\"\n"), "") << "quotes of a pair are text";
  EXPECT_FALSE(std::filesystem::exists(base_ + ".bin.tmp.lines"));
}

// A prompt is parsed like the lines that a model was trained on.
TEST(SideOfLine, IsThatOfALineOfTheText) {
  for (const std::string text :
       {"a b", " a b", "a b \v\f", "a b\n", "a b\r\n", "a b \r\r", "a b\r"}) {
    const auto side = SideOfLine(text);
    ASSERT_TRUE(side.ok()) << side.status();
    EXPECT_EQ(*side, "a b");
  }
  for (const std::string text : {"", "\n", " \t \r\n"})
    EXPECT_EQ(SideOfLine(text).value(), "") << text;
  const auto error = [](const std::string& text) {
    return std::string(SideOfLine(text).status().message());
  };
  EXPECT_THAT(error("a\tb"), AllOf(HasSubstr("the line has a tab"), HasSubstr("remove it")));
  EXPECT_THAT(error("a b\t"), HasSubstr("has a tab")) << "as a second one of a line";
  EXPECT_THAT(error("a\nb"), HasSubstr("has a newline inside"));
  EXPECT_THAT(error("a\n\n"), HasSubstr("has a newline inside"));
  EXPECT_THAT(error("a\rb"), HasSubstr("has a carriage return inside"));
  EXPECT_THAT(error(std::string("a\0b", 3)), HasSubstr("has a NUL byte"));
  EXPECT_THAT(error("\xEF\xBB\xBF"
                    "a"),
              HasSubstr("begins with a byte order mark"));
}

TEST_F(LineSamplerTest, AResolvedConfigurationKeepsItsLabelsAndAlphabet) {
  config_.mutable_data()->set_tokenizer(DataConfig::CHARACTER);
  ASSERT_TRUE(Prepare("a\txy\nb\tx\n").ok());
  EXPECT_EQ(config_.data().resolved_alphabet(), "xy") << "of the texts alone";
  EXPECT_THAT(std::string(Prepare("c\tx\n").message()),
              AllOf(HasSubstr("line 1"), HasSubstr("not one of the 2 labels")));
  ASSERT_TRUE(Prepare("b\tyyy\n").ok());
  EXPECT_EQ(file_->Line(0).second, 1u);
}

TEST_F(LineSamplerTest, TheFormIsPartOfWhatAFileWasMadeFrom) {
  ASSERT_TRUE(Prepare("a\tx\nb\ty\n").ok());
  const auto again = PrepareTokenFile(config_.data(), base_ + ".bin", TextForm::kLabelledLines);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->reused);
  EXPECT_EQ(again->labels.size(), 2u);
  const auto running = PrepareTokenFile(config_.data(), base_ + ".bin");
  ASSERT_TRUE(running.ok());
  EXPECT_FALSE(running->reused);
  EXPECT_EQ(running->tokens, 8u);
}

TEST_F(LineSamplerTest, TooFewLinesAreAnErrorWithTheRemedy) {
  ASSERT_TRUE(Prepare(Numbered(5)).ok());
  EXPECT_THAT(std::string(MakeSampler(config_, &*file_).status().message()),
              AllOf(HasSubstr("5 lines"), HasSubstr("use more lines")));
}

TEST(RandomSampler, DrawsFreshUniformTokensEverySampleOfEveryEpoch) {
  JobConfig config;
  config.set_seed(3);
  config.mutable_model()->set_family(ModelConfig::ENCODER);
  config.mutable_model()->set_context(128);
  config.mutable_train()->set_global_batch(10);
  config.mutable_cluster()->set_virtual_workers(2);
  config.mutable_data()->mutable_random()->set_samples(20);
  config.mutable_data()->mutable_random()->set_symbols(1000);
  config.mutable_data()->set_validation_fraction(0.5);
  const auto sampler = MakeSampler(config, nullptr);
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  EXPECT_EQ((*sampler)->train_samples(), 20u);
  EXPECT_EQ((*sampler)->validation_samples(), 10u);
  SampleBatch batch, again;
  std::set<std::vector<int32_t>> seen;
  double sum = 0;
  for (uint64_t step = 0; step < 40; ++step) {
    for (uint32_t v = 0; v < 2; ++v) {
      (*sampler)->Fill(step, v, 0, 5, batch);
      EXPECT_TRUE(batch.lengths.empty());
      EXPECT_EQ(batch.targets, std::vector<int32_t>(5, 0));
      seen.insert(batch.tokens);
      for (const int32_t token : batch.tokens) sum += token;
      ASSERT_GE(*std::ranges::min_element(batch.tokens), 0);
      ASSERT_LT(*std::ranges::max_element(batch.tokens), 1000);
    }
  }
  EXPECT_EQ(seen.size(), 80u);
  EXPECT_NEAR(sum / (80 * 5 * 128), 499.5, 5);  // 4 standard errors
  (*sampler)->FillEval(0, 0, 10, batch);
  (*sampler)->FillEval(0, 0, 10, again);
  EXPECT_EQ(batch.tokens, again.tokens);
}

}  // namespace
}  // namespace tug
