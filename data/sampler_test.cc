// SPDX-License-Identifier: Apache-2.0
#include "data/window_sampler.h"

#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "data/shuffle.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Shuffle, IsABijectionForEverySize) {
  for (uint64_t size = 1; size <= 300; ++size) {
    const Shuffle shuffle(size, 42, size % 7);
    std::vector<bool> hit(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t to = shuffle(i);
      ASSERT_LT(to, size);
      ASSERT_FALSE(hit[to]) << size;
      hit[to] = true;
    }
  }
  const Shuffle large(uint64_t{1} << 62, 1, 1);
  EXPECT_LT(large((uint64_t{1} << 62) - 1), uint64_t{1} << 62);
}

TEST(Shuffle, DependsOnEveryBitOfSeedAndEpoch) {
  const auto order = [](uint64_t seed, uint64_t epoch) {
    std::vector<uint64_t> to;
    for (uint64_t i = 0; i < 64; ++i) to.push_back(Shuffle(1000, seed, epoch)(i));
    return to;
  };
  std::set<std::vector<uint64_t>> seen = {order(0, 0)};
  for (int bit = 0; bit < 64; ++bit) seen.insert(order(uint64_t{1} << bit, 0));
  for (int bit = 0; bit < 56; ++bit) seen.insert(order(0, uint64_t{1} << bit));
  EXPECT_EQ(seen.size(), 121u);
}

// In a uniform permutation of n, the mean absolute displacement is n / 3, and so is the mean
// distance of neighbours' images.
TEST(Shuffle, LooksUniform) {
  constexpr uint64_t kSize = 10000;
  const Shuffle shuffle(kSize, 5, 3);
  double displacement = 0;
  double neighbours = 0;
  for (uint64_t i = 0; i + 1 < kSize; ++i) {
    const double a = static_cast<double>(shuffle(i));
    displacement += std::abs(a - static_cast<double>(i));
    neighbours += std::abs(a - static_cast<double>(shuffle(i + 1)));
  }
  EXPECT_NEAR(displacement / kSize, kSize / 3.0, kSize / 30.0);
  EXPECT_NEAR(neighbours / kSize, kSize / 3.0, kSize / 30.0);
}

class SamplerTest : public testing::Test {
 protected:
  // Makes a text whose token at i is 1 + (i * i + i / 255) mod 255, so windows differ.
  void Make(uint64_t tokens) {
    const std::string base =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    config_.mutable_data()->set_path(base + ".txt");
    config_.mutable_data()->set_tokenizer(DataConfig::BYTE);
    std::string text;
    for (uint64_t i = 0; i < tokens; ++i) {
      text.push_back(static_cast<char>(1 + (i * i + i / 255) % 255));
    }
    std::ofstream(base + ".txt", std::ios::binary) << text;
    ASSERT_TRUE(PrepareTokenFile(config_.data(), base + ".bin").ok());
    auto file = TokenFile::Open(base + ".bin");
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
  }

  // The sampler is valid until the next call.
  const WindowSampler& Get(uint32_t context, uint32_t batch, uint32_t virtual_workers,
                           double validation = 0.1) {
    Set(context, batch, virtual_workers, validation);
    auto sampler = MakeSampler(config_, &*file_);
    EXPECT_TRUE(sampler.ok()) << sampler.status();
    sampler_ = *std::move(sampler);
    return dynamic_cast<const WindowSampler&>(*sampler_);
  }

  std::string ErrorOf(uint32_t context, double validation) {
    Set(context, 1, 1, validation);
    return std::string(MakeSampler(config_, &*file_).status().message());
  }

  void Set(uint32_t context, uint32_t batch, uint32_t virtual_workers, double validation) {
    config_.set_seed(11);
    config_.mutable_model()->set_context(context);
    config_.mutable_train()->set_global_batch(batch);
    config_.mutable_cluster()->set_virtual_workers(virtual_workers);
    config_.mutable_data()->set_validation_fraction(validation);
  }

  // Inputs and targets of a whole step, in order of position.
  static std::vector<int32_t> Step(const Sampler& sampler, uint32_t context, uint64_t step,
                                   uint32_t virtual_workers, uint32_t micro_batch) {
    std::vector<int32_t> all;
    SampleBatch batch;
    for (uint32_t v = 0; v < virtual_workers; ++v) {
      for (uint32_t i = 0; i < sampler.share(); i += micro_batch) {
        sampler.Fill(step, v, i, micro_batch, batch);
        for (uint32_t row = 0; row < micro_batch; ++row) {
          all.insert(all.end(), batch.tokens.begin() + row * context,
                     batch.tokens.begin() + (row + 1) * context);
          all.insert(all.end(), batch.targets.begin() + row * context,
                     batch.targets.begin() + (row + 1) * context);
        }
      }
    }
    return all;
  }

  JobConfig config_;
  std::optional<TokenFile> file_;
  std::unique_ptr<Sampler> sampler_;
};

TEST_F(SamplerTest, ReadsEachWindowExactlyOnceAnEpochWithinTheTrainingSplit) {
  Make(5000);
  for (const uint32_t context : {2u, 7u, 64u, 500u, 2000u}) {
    const WindowSampler& sampler = Get(context, 6, 3, context > 400 ? 0 : 0.1);
    const uint64_t windows = sampler.train_samples();
    EXPECT_EQ(windows, sampler.train_tokens() / context - 1);
    for (uint64_t epoch = 0; epoch < 5; ++epoch) {
      std::set<uint64_t> starts;
      for (uint64_t i = 0; i < windows; ++i) {
        starts.insert(sampler.FirstToken(epoch, i));
      }
      ASSERT_EQ(starts.size(), windows);
      ASSERT_LT(*starts.begin(), context);
      ASSERT_EQ(*starts.rbegin() - *starts.begin(), (windows - 1) * context);
      ASSERT_LT(*starts.rbegin() + context, sampler.train_tokens());
    }
  }
}

TEST_F(SamplerTest, OffsetsAndOrderDifferBetweenEpochs) {
  Make(5000);
  const WindowSampler& sampler = Get(50, 1, 1);
  std::set<uint64_t> first;
  std::set<uint64_t> offsets;
  for (uint64_t epoch = 0; epoch < 100; ++epoch) {
    const uint64_t start = sampler.FirstToken(epoch, 0);
    first.insert(start);
    offsets.insert(start % 50);
  }
  EXPECT_GT(first.size(), 80u);
  EXPECT_GT(offsets.size(), 30u);
}

TEST_F(SamplerTest, TargetsAreTheNextTokens) {
  Make(3000);
  const WindowSampler& sampler = Get(16, 4, 2);
  SampleBatch batch;
  sampler.Fill(9, 1, 0, 2, batch);
  EXPECT_TRUE(batch.lengths.empty());
  EXPECT_TRUE(batch.decoder_tokens.empty());
  for (uint32_t row = 0; row < 2; ++row) {
    std::vector<int32_t> window(17);
    const uint64_t id = sampler.GlobalSampleId(9, 1, row), windows = sampler.train_samples();
    file_->Read(sampler.FirstToken(id / windows, id % windows), window);
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(batch.tokens[row * 16 + i], window[i]);
      EXPECT_EQ(batch.targets[row * 16 + i], window[i + 1]);
    }
  }
}

TEST_F(SamplerTest, AStepIsTheSameHoweverVirtualWorkersDivideIt) {
  Make(5000);
  const auto expected = Step(Get(8, 12, 1), 8, 100, 1, 12);
  for (const uint32_t virtual_workers : {1u, 2u, 3u, 4u, 6u, 12u}) {
    for (uint32_t micro = 1; micro <= 12 / virtual_workers; ++micro) {
      if (12 / virtual_workers % micro != 0) continue;
      const WindowSampler& sampler = Get(8, 12, virtual_workers);
      EXPECT_EQ(Step(sampler, 8, 100, virtual_workers, micro), expected) << virtual_workers;
    }
  }
}

TEST_F(SamplerTest, AResumedRunReadsWhatAnUninterruptedOneDoes) {
  Make(2000);
  std::vector<std::vector<int32_t>> run;
  const WindowSampler& sampler = Get(8, 10, 2);
  for (uint64_t step = 0; step < 100; ++step) run.push_back(Step(sampler, 8, step, 2, 5));
  const WindowSampler& resumed = Get(8, 10, 2);
  for (uint64_t step = 57; step < 100; ++step) {
    EXPECT_EQ(Step(resumed, 8, step, 2, 5), run[step]);
  }
}

TEST_F(SamplerTest, SampleIdsNumberTheWholeJob) {
  Make(1000);
  const WindowSampler& sampler = Get(8, 6, 3);
  uint64_t expected = 0;
  for (uint64_t step = 0; step < 4; ++step) {
    for (uint32_t v = 0; v < 3; ++v) {
      for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(sampler.GlobalSampleId(step, v, i), expected++);
    }
  }
}

TEST_F(SamplerTest, EvaluationCoversTheValidationSplitOnce) {
  Make(5000);
  for (const uint32_t virtual_workers : {1u, 2u, 3u, 7u}) {
    const WindowSampler& sampler = Get(16, 42, virtual_workers);
    ASSERT_EQ(sampler.validation_samples(), (500 - 1) / 16);
    for (const uint64_t samples : {uint64_t{0}, uint64_t{1}, uint64_t{5}, uint64_t{1000000}}) {
      const uint64_t windows = sampler.EvalSamples(samples);
      EXPECT_EQ(windows, samples == 0 ? 31 : std::min<uint64_t>(samples, 31));
      uint64_t next = 0;
      for (uint32_t v = 0; v < virtual_workers; ++v) {
        const Sampler::Run run = sampler.EvalShare(samples, v);
        EXPECT_EQ(run.first, next);
        next += run.count;
      }
      EXPECT_EQ(next, windows);
      SampleBatch batch;
      sampler.FillEval(samples, 0, static_cast<uint32_t>(windows), batch);
      for (uint64_t j = 0; j < windows; ++j) {
        std::vector<int32_t> expected(17);
        file_->Read(4500 + j * 31 / windows * 16, expected);
        EXPECT_TRUE(
            std::equal(expected.begin(), expected.end() - 1, batch.tokens.begin() + j * 16));
        EXPECT_TRUE(
            std::equal(expected.begin() + 1, expected.end(), batch.targets.begin() + j * 16));
      }
    }
  }
}

TEST_F(SamplerTest, SplitsAsTheFractionSays) {
  Make(1115);
  EXPECT_EQ(Get(8, 1, 1).train_tokens(), 1003u);
  EXPECT_EQ(Get(8, 1, 1, 0.5).train_tokens(), 557u);
  const WindowSampler& without = Get(8, 1, 1, 0);
  EXPECT_EQ(without.train_tokens(), 1115u);
  EXPECT_EQ(without.validation_samples(), 0u);
  EXPECT_EQ(without.EvalSamples(5), 0u);
  EXPECT_EQ(without.EvalShare(5, 0).count, 0u);
}

TEST_F(SamplerTest, AWholeTextForValidationHasEveryTokenButTheFirstForATarget) {
  constexpr uint32_t kContext = 16;
  for (const uint64_t tokens : {2, 16, 17, 18, 32, 33, 100}) {
    SCOPED_TRACE(tokens);
    Make(tokens);
    Set(kContext, 1, 1, 0.1);
    const auto sampler = MakeSampler(config_, &*file_, Split::kAllValidation);
    ASSERT_TRUE(sampler.ok()) << sampler.status();
    const auto windows = static_cast<uint32_t>((*sampler)->validation_samples());
    ASSERT_EQ(windows, (tokens - 1 + kContext - 1) / kContext);
    SampleBatch batch;
    (*sampler)->FillEval(0, 0, windows, batch);
    std::vector<int32_t> text(tokens);
    file_->Read(0, text);
    for (size_t i = 0; i < size_t{windows} * kContext; ++i) {
      EXPECT_EQ(batch.tokens[i], i + 1 < tokens ? text[i] : kPadding) << i;
      EXPECT_EQ(batch.targets[i], i + 1 < tokens ? text[i + 1] : kNoSampleTarget) << i;
    }
  }
  Make(1);
  Set(kContext, 1, 1, 0.1);
  EXPECT_THAT(std::string(MakeSampler(config_, &*file_, Split::kAllValidation).status().message()),
              AllOf(HasSubstr("1 token"), HasSubstr("at least 2")));
}

TEST_F(SamplerTest, TooShortATextIsAnErrorWithNumbersAndRemedy) {
  Make(100);
  EXPECT_THAT(ErrorOf(64, 0),
              AllOf(HasSubstr("100 tokens"), HasSubstr("context 64"), HasSubstr("at least 128"),
                    HasSubstr(".txt"), HasSubstr("use a longer text")));
  EXPECT_THAT(ErrorOf(20, 0.1), AllOf(HasSubstr("10 are for validation"), HasSubstr("at least 21"),
                                      HasSubstr("data.validation_fraction")));
  EXPECT_EQ(ErrorOf(50, 0), "");
  EXPECT_NE(ErrorOf(51, 0), "");
  Make(1);
  EXPECT_NE(ErrorOf(2, 0.5), "");
}

TEST(ReplaySampler, CountsSamplesAsTokensAndHasNoValidation) {
  JobConfig config;
  config.set_compute(JobConfig::REPLAY);
  config.mutable_cluster()->set_virtual_workers(2);
  config.mutable_train()->set_global_batch(64);
  const auto sampler = MakeSampler(config, /*file=*/nullptr);
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  EXPECT_EQ((*sampler)->share(), 32u);
  EXPECT_EQ((*sampler)->validation_samples(), 0u);
  EXPECT_EQ((*sampler)->EvalShare(0, 1).count, 0u);
  SampleBatch batch;
  (*sampler)->Fill(1000, 1, 0, 32, batch);
  EXPECT_EQ(batch.TokenCount(), 32u);
  EXPECT_EQ(batch.targets.size(), 32u);
}

}  // namespace
}  // namespace tug
