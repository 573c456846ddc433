// Loss, logits and every gradient tensor of the model against PyTorch's
// (deploy/compare/make_fixture.py makes the fixture, in double precision from FP32 weights).
//
// Bounds: |ours - reference| <= kRelativeBound * (largest |reference| of the tensor) for every
// element, and kLossBound relative for the loss. Measured with AVX-512: gradients 1.0e-6, loss
// 4e-8 (PyTorch's own FP32: 7e-7 and 1e-7).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "model/gpt.h"
#include "model/layout.h"

namespace tug {
namespace {

constexpr double kRelativeBound = 3e-6;
constexpr double kLossBound = 3e-7;

constexpr int kLayers = 2, kWidth = 16, kHeads = 2, kContext = 8, kSymbols = 11, kBatch = 3;

// A safetensors file: 8 bytes little-endian header length, JSON header, bytes of the tensors.
class Fixture {
 public:
  Fixture() {
    std::ifstream file("model/testdata/gpt_fixture.safetensors", std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    uint64_t header_bytes = 0;
    EXPECT_GT(bytes_.size(), sizeof(header_bytes)) << "fixture not found";
    std::memcpy(&header_bytes, bytes_.data(), sizeof(header_bytes));
    data_ = sizeof(header_bytes) + header_bytes;
    header_ = nlohmann::json::parse(bytes_.begin() + sizeof(header_bytes), bytes_.begin() + data_);
  }

  template <typename T>
  std::vector<T> Read(const std::string& name) const {
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
  bool tied;
  bool bias;
};

class GptFixture : public testing::TestWithParam<Case> {
 protected:
  GptFixture() {
    config_.set_layers(kLayers);
    config_.set_width(kWidth);
    config_.set_heads(kHeads);
    config_.set_context(kContext);
    config_.set_dropout(0);
    config_.set_tied_head(GetParam().tied);
    config_.set_bias(GetParam().bias);
    auto gpt = Gpt::Create(config_, kSymbols, kBatch, pool_);
    EXPECT_TRUE(gpt.ok()) << gpt.status();
    gpt_ = *std::move(gpt);
    for (const BlockSpec& block : gpt_->blocks().blocks()) {
      weights_.push_back(BlockOf(block, "weight"));
      gradients_.emplace_back(ElementCount(block), std::nanf(""));
    }
    for (int b = 0; b < gpt_->num_blocks(); ++b) {
      gpt_->BindWeights(b, weights_[b]);
      gpt_->BindGradient(b, gradients_[b]);
    }
    tokens_ = fixture_.Read<int32_t>(Name("tokens"));
    targets_ = fixture_.Read<int32_t>(Name("targets"));
  }

  std::string Name(const std::string& what) const { return GetParam().name + "/" + what; }

  std::vector<float> BlockOf(const BlockSpec& block, const std::string& kind) const {
    std::vector<float> values;
    for (const TensorSpec& tensor : block.tensors()) {
      const std::string name = Name(kind + "/" + tensor.name());
      const std::vector<uint64_t> shape(tensor.shape().begin(), tensor.shape().end());
      EXPECT_EQ(fixture_.Shape(name), shape) << name;
      const std::vector<float> part = fixture_.Read<float>(name);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  void ForwardAndBackward() {
    gpt_->Start({.samples = kBatch, .tokens = tokens_, .targets = targets_, .training = true});
    for (int b = 0; b < gpt_->num_blocks(); ++b) gpt_->Forward(b);
    for (int b = gpt_->num_blocks() - 1; b >= 0; --b) gpt_->Backward(b);
  }

  const Fixture fixture_;
  ThreadPool pool_{2};
  ModelConfig config_;
  std::unique_ptr<Gpt> gpt_;
  std::vector<std::vector<float>> weights_, gradients_;
  std::vector<int32_t> tokens_, targets_;
};

// Largest difference of two equally long runs of values, in parts of the largest reference.
double RelativeError(std::span<const float> ours, std::span<const float> reference) {
  double difference = 0, scale = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double one = std::abs(double{ours[i]} - double{reference[i]});
    difference = std::isnan(one) ? HUGE_VAL : std::max(difference, one);
    scale = std::max(scale, std::abs(double{reference[i]}));
  }
  return difference / scale;
}

TEST_P(GptFixture, LossEqualsPyTorch) {
  ForwardAndBackward();
  const double reference = fixture_.Read<double>(Name("loss_sum"))[0];
  std::cout << "loss error " << gpt_->loss_sum() / reference - 1 << "\n";
  EXPECT_NEAR(gpt_->loss_sum() / reference, 1, kLossBound);
}

TEST_P(GptFixture, EveryGradientTensorEqualsPyTorch) {
  ForwardAndBackward();
  double worst = 0;
  for (int b = 0; b < gpt_->num_blocks(); ++b) {
    size_t offset = 0;
    for (const TensorSpec& tensor : gpt_->blocks().blocks(b).tensors()) {
      const std::vector<float> reference = fixture_.Read<float>(Name("gradient/" + tensor.name()));
      const std::span<const float> ours(&gradients_[b][offset], reference.size());
      const double error = RelativeError(ours, reference);
      EXPECT_LE(error, kRelativeBound) << tensor.name();
      worst = std::max(worst, error);
      offset += reference.size();
    }
    EXPECT_EQ(offset, gradients_[b].size());
  }
  std::cout << "worst gradient error " << worst << "\n";
}

TEST_P(GptFixture, LogitsOfEveryPrefixEqualPyTorch) {
  const std::vector<float> reference = fixture_.Read<float>(Name("logits"));
  std::vector<float> logits(kSymbols);
  for (int length = 1; length <= kContext; ++length) {
    gpt_->Logits(std::span(tokens_).first(length), logits);
    const std::span<const float> expected(&reference[(length - 1) * kSymbols], kSymbols);
    EXPECT_LE(RelativeError(logits, expected), kRelativeBound) << length << " tokens";
  }
}

INSTANTIATE_TEST_SUITE_P(TiedAndBias, GptFixture,
                         testing::Values(Case{"tied_bias", true, true},
                                         Case{"tied_no_bias", true, false},
                                         Case{"untied_bias", false, true},
                                         Case{"untied_no_bias", false, false}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tug
