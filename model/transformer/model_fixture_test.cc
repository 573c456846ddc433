// SPDX-License-Identifier: Apache-2.0
// Loss, logits and every gradient tensor of models of all families against PyTorch
// (deploy/compare/make_fixture.py makes the fixtures, in double precision from FP32 weights).
//
// Bounds: |ours - reference| <= kRelativeBound * (largest |reference| of the tensor) for every
// element, and kLossBound relative for the loss. Measured with AVX-512: gradients 1.1e-6,
// loss 1.7e-7 for an encoder's three samples, else 8e-8 (PyTorch's own FP32: 1.0e-6 and 1.8e-7).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/cpu/thread_pool.h"
#include "model/layout.h"
#include "model/model.h"
#include "model/transformer/create_model.h"

namespace tug {
namespace {

constexpr double kRelativeBound = 3e-6;
constexpr double kLossBound = 3e-7;

constexpr int kLayers = 2, kWidth = 16, kHeads = 2, kContext = 8, kSymbols = 11, kBatch = 3;
constexpr int kMlpWidth = 40, kClasses = 5;  // of stacks_fixture

// A safetensors file: 8 bytes little-endian header length, JSON header, bytes of the tensors.
class Fixture {
 public:
  explicit Fixture(const std::string& name) {
    std::ifstream file("model/transformer/testdata/" + name, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    uint64_t header_bytes = 0;
    EXPECT_GT(bytes_.size(), sizeof(header_bytes)) << "fixture not found";
    std::memcpy(&header_bytes, bytes_.data(), sizeof(header_bytes));
    data_ = sizeof(header_bytes) + header_bytes;
    header_ = nlohmann::json::parse(bytes_.begin() + sizeof(header_bytes), bytes_.begin() + data_);
  }

  // Empty if there is no such tensor.
  template <typename T>
  std::vector<T> Read(const std::string& name) const {
    if (!header_.contains(name)) return {};
    const auto& tensor = header_.at(name);
    const size_t begin = tensor.at("data_offsets")[0];
    const size_t end = tensor.at("data_offsets")[1];
    std::vector<T> values((end - begin) / sizeof(T));
    std::memcpy(values.data(), bytes_.data() + data_ + begin, end - begin);
    return values;
  }

  std::vector<uint64_t> Shape(const std::string& name) const {
    return header_.at(name).at("shape").get<std::vector<uint64_t>>();
  }

 private:
  std::vector<char> bytes_;
  size_t data_ = 0;
  nlohmann::json header_;
};

struct Case {
  std::string name;
  ModelConfig::Family family;
  ModelConfig::NormPlace norm;
  ModelConfig::Activation activation;
  bool tied;
  bool bias;

  bool is_gpt() const { return family == ModelConfig::DECODER; }
};

ModelOptions OptionsOf(const Case& of) {
  ModelOptions options;
  ModelConfig& config = options.config;
  config.set_family(of.family);
  config.set_norm(of.norm);
  config.set_activation(of.activation);
  config.set_layers(kLayers);
  config.set_width(kWidth);
  config.set_mlp_width(of.is_gpt() ? 4 * kWidth : kMlpWidth);
  config.set_heads(kHeads);
  config.set_context(kContext);
  config.set_dropout(0);
  config.set_tied_head(of.tied);
  config.set_bias(of.bias);
  options.train.set_precision(TrainConfig::FP32);
  options.train.set_recompute(TrainConfig::NONE);
  options.symbols = kSymbols;
  options.classes = of.family == ModelConfig::ENCODER ? kClasses : 0;
  options.max_micro_batch = kBatch;
  return options;
}

class ModelFixture : public testing::TestWithParam<Case> {
 protected:
  ModelFixture()
      : fixture_(GetParam().is_gpt() ? "gpt_fixture.safetensors" : "stacks_fixture.safetensors") {
    auto model = CreateModel(OptionsOf(GetParam()), pool_);
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    for (const BlockSpec& block : model_->blocks().blocks()) {
      weights_.push_back(WeightsOf(block));
      gradients_.emplace_back(ElementCount(block), std::nanf(""));
    }
    for (int b = 0; b < model_->num_blocks(); ++b) {
      model_->BindWeights(b, {.fp32 = weights_[static_cast<size_t>(b)]});
      model_->BindGradient(b, gradients_[static_cast<size_t>(b)]);
    }
    tokens_ = fixture_.Read<int32_t>(Name("tokens"));
    lengths_ = fixture_.Read<int32_t>(Name("lengths"));
    decoder_tokens_ = fixture_.Read<int32_t>(Name("decoder_tokens"));
    targets_ = fixture_.Read<int32_t>(Name("targets"));
  }

  std::string Name(const std::string& what) const { return GetParam().name + "/" + what; }

  std::vector<float> WeightsOf(const BlockSpec& block) const {
    std::vector<float> values;
    for (const TensorSpec& tensor : block.tensors()) {
      const std::string name = Name("weight/" + tensor.name());
      const std::vector<uint64_t> shape(tensor.shape().begin(), tensor.shape().end());
      EXPECT_EQ(fixture_.Shape(name), shape) << name;
      const std::vector<float> part = fixture_.Read<float>(name);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  void ForwardAndBackward() {
    model_->Start({.samples = kBatch,
                   .tokens = tokens_,
                   .lengths = lengths_,
                   .decoder_tokens = decoder_tokens_,
                   .targets = targets_,
                   .training = true});
    for (int b = 0; b < model_->num_blocks(); ++b) model_->Forward(b);
    for (int b = model_->num_blocks() - 1; b >= 0; --b) model_->Backward(b);
  }

  const Fixture fixture_;
  ThreadPool pool_{2};
  std::unique_ptr<Model> model_;
  std::vector<std::vector<float>> weights_, gradients_;
  std::vector<int32_t> tokens_, lengths_, decoder_tokens_, targets_;
};

// Largest difference of two arrays of equal length, relative to the largest reference.
double RelativeError(std::span<const float> ours, std::span<const float> reference) {
  double difference = 0, scale = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    difference = std::max(difference, std::abs(double{ours[i]} - double{reference[i]}));
    scale = std::max(scale, std::abs(double{reference[i]}));
  }
  return difference / scale;
}

TEST_P(ModelFixture, LossEqualsPyTorch) {
  ForwardAndBackward();
  const double reference = fixture_.Read<double>(Name("loss_sum"))[0];
  const double error = model_->losses().loss / reference - 1;
  std::cout << "loss error " << error << "\n";
  EXPECT_NEAR(error, 0, kLossBound);
}

TEST_P(ModelFixture, EveryGradientTensorEqualsPyTorch) {
  ForwardAndBackward();
  double worst = 0;
  for (int b = 0; b < model_->num_blocks(); ++b) {
    const std::vector<float>& gradient = gradients_[static_cast<size_t>(b)];
    size_t offset = 0;
    for (const TensorSpec& tensor : model_->blocks().blocks(b).tensors()) {
      const std::vector<float> reference = fixture_.Read<float>(Name("gradient/" + tensor.name()));
      const double error = RelativeError(std::span(&gradient[offset], reference.size()), reference);
      EXPECT_LE(error, kRelativeBound) << tensor.name();
      worst = std::max(worst, error);
      offset += reference.size();
    }
    EXPECT_EQ(offset, gradient.size());
  }
  std::cout << "worst gradient error " << worst << "\n";
}

class DecoderFixture : public ModelFixture {};

TEST_P(DecoderFixture, LogitsOfEveryPrefixEqualPyTorch) {
  const std::vector<float> reference = fixture_.Read<float>(Name("logits"));
  std::vector<float> logits(kSymbols);
  for (size_t length = 1; length <= kContext; ++length) {
    model_->Logits(std::span(tokens_).first(length), logits);
    const std::span<const float> expected(&reference[(length - 1) * kSymbols], kSymbols);
    EXPECT_LE(RelativeError(logits, expected), kRelativeBound) << length << " tokens";
  }
}

std::vector<Case> Decoders() {
  constexpr auto kDecoder = ModelConfig::DECODER;
  constexpr auto kPre = ModelConfig::PRE;
  constexpr auto kGelu = ModelConfig::GELU;
  return {{"tied_bias", kDecoder, kPre, kGelu, true, true},
          {"tied_no_bias", kDecoder, kPre, kGelu, true, false},
          {"untied_bias", kDecoder, kPre, kGelu, false, true},
          {"untied_no_bias", kDecoder, kPre, kGelu, false, false}};
}

std::vector<Case> OtherFamilies() {
  constexpr auto kPre = ModelConfig::PRE, kPost = ModelConfig::POST;
  constexpr auto kGelu = ModelConfig::GELU, kRelu = ModelConfig::RELU;
  constexpr auto kEncoder = ModelConfig::ENCODER, kBoth = ModelConfig::ENCODER_DECODER;
  return {{"encoder_post_relu", kEncoder, kPost, kRelu, false, true},
          {"encoder_pre_gelu", kEncoder, kPre, kGelu, false, true},
          {"encoder_decoder_post_relu_tied", kBoth, kPost, kRelu, true, true},
          {"encoder_decoder_pre_gelu_untied", kBoth, kPre, kGelu, false, true}};
}

std::string NameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Gpt, ModelFixture, testing::ValuesIn(Decoders()), NameOf);
INSTANTIATE_TEST_SUITE_P(Stacks, ModelFixture, testing::ValuesIn(OtherFamilies()), NameOf);
INSTANTIATE_TEST_SUITE_P(Gpt, DecoderFixture, testing::ValuesIn(Decoders()), NameOf);

}  // namespace
}  // namespace tug
