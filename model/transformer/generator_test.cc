// SPDX-License-Identifier: Apache-2.0
// The generator against Model::Logits, which rereads the whole text for each token.
//
// Bound: |difference| <= kRelativeBound * (largest |logit|) for every logit. Both are FP32 and
// differ only in the order of sums.
#include "model/transformer/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "model/transformer/model_rig.h"

namespace tug {
namespace {

constexpr double kRelativeBound = 2e-6;
constexpr size_t kContext = 10;

std::unique_ptr<Generator> MakeGenerator(ModelRig& rig, ThreadPool& pool) {
  std::vector<std::span<const float>> weights(rig.weights().begin(), rig.weights().end());
  auto generator = Generator::Create(rig.options().config, rig.options().symbols, weights, pool);
  EXPECT_TRUE(generator.ok()) << generator.status();
  return *std::move(generator);
}

std::vector<float> Copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

std::vector<float> ModelLogits(ModelRig& rig, std::span<const int32_t> tokens) {
  std::vector<float> logits(rig.options().symbols);
  rig.model().Logits(tokens, logits);
  return logits;
}

void ExpectClose(std::span<const float> actual, std::span<const float> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = 0;
  for (const float logit : expected) largest = std::max(largest, std::abs(logit));
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_LE(std::abs(double{actual[i]} - double{expected[i]}), kRelativeBound * double{largest})
        << "symbol " << i;
  }
}

std::vector<ModelOptions> Decoders() {
  std::vector<ModelOptions> all;
  for (const bool tied : {true, false}) {
    for (const bool bias : {true, false}) {
      for (const auto norm : {ModelConfig::PRE, ModelConfig::POST}) {
        for (const auto activation : {ModelConfig::GELU, ModelConfig::RELU}) {
          ModelOptions options = SmallModel(ModelConfig::DECODER);
          options.config.set_tied_head(tied);
          options.config.set_bias(bias);
          options.config.set_norm(norm);
          options.config.set_activation(activation);
          options.max_micro_batch = 4;
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

TEST(Generator, HasTheModelsLogitsAfterEveryPrefix) {
  for (const ModelOptions& options : Decoders()) {
    SCOPED_TRACE(options.config.ShortDebugString());
    ModelRig rig(options);
    ThreadPool pool(2);
    const auto generator = MakeGenerator(rig, pool);
    const std::span<const int32_t> text = std::span(rig.tokens()).first(kContext);
    for (size_t i = 0; i < kContext; ++i) {
      ExpectClose(generator->Append(text.subspan(i, 1)), ModelLogits(rig, text.first(i + 1)));
    }
  }
}

TEST(Generator, ReadsManyTokensAtOnceAsItReadsThemOneByOne) {
  for (const ModelOptions& options : Decoders()) {
    SCOPED_TRACE(options.config.ShortDebugString());
    ModelRig rig(options);
    ThreadPool pool(1);
    const auto generator = MakeGenerator(rig, pool);
    const std::span<const int32_t> text = std::span(rig.tokens()).first(kContext);
    for (size_t size = 1; size <= kContext; ++size) {
      generator->Reset();
      ExpectClose(generator->Append(text.first(size)), ModelLogits(rig, text.first(size)));
    }
    generator->Reset();
    size_t read = 0;
    for (const size_t size : {3, 1, 4, 2}) {
      const std::span<const float> logits = generator->Append(text.subspan(read, size));
      read += size;
      ExpectClose(logits, ModelLogits(rig, text.first(read)));
    }
  }
}

// The last `count` tokens of `before` followed by `after`.
std::vector<int32_t> Following(std::span<const int32_t> before, std::span<const int32_t> after,
                               size_t count) {
  std::vector<int32_t> all(before.begin(), before.end());
  all.insert(all.end(), after.begin(), after.end());
  return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
}

TEST(Generator, BeyondTheContextReadsTheLastHalfOfItOrAllOfAPromptAgain) {
  for (const size_t context : {kContext, kContext + 1, size_t{1}}) {
    ModelOptions options = SmallModel(ModelConfig::DECODER);
    options.config.set_context(static_cast<uint32_t>(context));
    options.max_micro_batch = 40;
    ModelRig rig(options);
    ThreadPool pool(1);
    const auto generator = MakeGenerator(rig, pool);
    const std::span<const int32_t> text = std::span(rig.tokens()).first(40);
    const size_t half = (context + 1) / 2;
    size_t begin = 0;  // of the text in the generator's cache
    for (size_t end = 1; end <= text.size(); ++end) {
      if (end - begin > context) begin = end - half;
      ExpectClose(generator->Append(text.subspan(end - 1, 1)),
                  ModelLogits(rig, text.subspan(begin, end - begin)));
    }
    // More tokens than the context in one call, after others or alone.
    ExpectClose(generator->Append(text), ModelLogits(rig, text.last(context)));
    generator->Reset();
    ExpectClose(generator->Append(text), ModelLogits(rig, text.last(context)));
    // Fewer tokens than the context, after others: all of them are kept.
    for (size_t size = 1; size <= context; ++size) {
      generator->Append(text);
      ExpectClose(generator->Append(text.last(size)),
                  ModelLogits(rig, Following(text, text.last(size), std::max(half, size))));
    }
  }
}

TEST(Generator, ForgetsEverythingAtReset) {
  ModelRig rig(SmallModel(ModelConfig::DECODER));
  ThreadPool pool(1);
  const auto used = MakeGenerator(rig, pool), fresh = MakeGenerator(rig, pool);
  const std::span<const int32_t> text(rig.tokens());
  used->Append(text.first(7));
  used->Append(text.first(1));
  used->Reset();
  for (const size_t size : {4, 1, 2}) {
    EXPECT_EQ(Copy(used->Append(text.first(size))), Copy(fresh->Append(text.first(size))));
  }
}

TEST(Generator, GivesSameBitsForAnyNumberOfThreads) {
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.config.set_context(150);
  options.config.set_mlp_width(600);
  options.config.set_width(192);
  ModelRig rig(options);
  const std::span<const int32_t> text(rig.tokens());
  std::vector<std::vector<float>> first;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const auto generator = MakeGenerator(rig, pool);
    std::vector<std::vector<float>> logits;
    for (const size_t size : {140, 1, 5}) {
      logits.push_back(Copy(generator->Append(text.first(size))));
    }
    if (first.empty()) first = logits;
    EXPECT_EQ(logits, first);
  }
}

TEST(Generator, RefusesOtherFamilies) {
  ThreadPool pool(1);
  for (const auto family : {ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    const auto generator = Generator::Create(SmallModel(family).config, kRigSymbols, {}, pool);
    EXPECT_EQ(generator.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(generator.status().message().find(FamilyName(family)), std::string::npos);
  }
}

}  // namespace
}  // namespace tug
