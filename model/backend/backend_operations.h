// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_BACKEND_OPERATIONS_H_
#define TUG_MODEL_BACKEND_BACKEND_OPERATIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/kernel_test_support.h"
#include "model/backend.h"

namespace tug {

// For tests: runs every operation of a backend on fixed inputs, equal for all backends.
template <typename T>
class Operations {
 public:
  // Copies to the backend's memory.
  using Upload = std::function<void(void* to, const void* from, size_t bytes)>;
  // By name of the operation and its result.
  using Results = std::map<std::string, std::vector<float>>;

  Operations(Backend<T>& backend, Upload upload) : backend_(backend), upload_(std::move(upload)) {}

  Results Run() {
    const std::vector<int32_t> tokens = kernels::RandomIndices(kRows, 1, kSymbols);
    const std::vector<int32_t> lengths = {5, 3};
    std::vector<int32_t> targets = kernels::RandomIndices(kRows, 2, kSymbols);
    targets[3] = kernels::kNoTarget;
    MicroBatch batch;
    batch.samples = kSamples;
    batch.tokens = tokens;
    batch.lengths = lengths;
    batch.targets = targets;
    inputs_ = backend_.LoadInputs(batch);
    EXPECT_EQ(inputs_.decoder_tokens, nullptr);
    RunMemory();
    RunEmbedding();
    RunLinear();
    RunAttention();
    RunLayerNorm();
    RunDropout();
    RunHead(kernels::WeightOrder::kInOut, "in_out");
    RunHead(kernels::WeightOrder::kOutIn, "out_in");
    return std::move(results_);
  }

 private:
  using Bf16 = kernels::Bf16;
  static constexpr int64_t kSamples = 2, kSeq = 5, kWidth = 24, kHeads = 3, kOut = 40;
  static constexpr int64_t kRows = kSamples * kSeq, kSymbols = 19;
  static constexpr float kDropout = 0.3f;
  static constexpr kernels::DropoutKey kKey = {.seed = 7, .step = 3, .sample = 2, .site = 5};

  template <typename U>
  U* OnBackend(const std::vector<U>& values) {
    auto memory = backend_.Allocate(values.size() * sizeof(U), "an array");
    EXPECT_TRUE(memory.ok()) << memory.status();
    memory_.push_back(*std::move(memory));
    upload_(memory_.back().get(), values.data(), values.size() * sizeof(U));
    return reinterpret_cast<U*>(memory_.back().get());
  }
  float* Floats(int64_t n) { return OnBackend(kernels::RandomFloats(n, ++seed_)); }
  T* Elements(int64_t n) { return OnBackend(kernels::As<T>(kernels::RandomFloats(n, ++seed_))); }
  // Rows of `width` elements, `stride` apart.
  T* Rows(int64_t width, int64_t stride) {
    return OnBackend(kernels::WithStride(
        kernels::As<T>(kernels::RandomFloats(kRows * width, ++seed_)), width, stride));
  }
  std::unique_ptr<WeightMatrix<T>> NewMatrix(int64_t in, int64_t out, kernels::WeightOrder order) {
    auto matrix = backend_.NewMatrix(in, out, order);
    EXPECT_EQ(matrix->in(), in);
    EXPECT_EQ(matrix->out(), out);
    EXPECT_EQ(matrix->order(), order);
    matrix->Bind(Floats(in * out));
    return matrix;
  }

  // Saves `rows` rows of `width` elements, `stride` apart.
  template <typename U>
  void Keep(const std::string& name, const U* from, int64_t rows, int64_t width, int64_t stride) {
    std::vector<U> values(static_cast<size_t>(rows * stride));
    backend_.Fetch(values.data(), from, values.size() * sizeof(U));
    std::vector<float>& kept = results_[name];
    for (int64_t i = 0; i < rows * stride; ++i) {
      if (i % stride < width) kept.push_back(Widen(values[static_cast<size_t>(i)]));
    }
    EXPECT_TRUE(backend_.status().ok()) << name << ": " << backend_.status();
  }
  template <typename U>
  void Keep(const std::string& name, const U* from, int64_t n) {
    Keep(name, from, 1, n, n);
  }
  static float Widen(Bf16 value) { return static_cast<float>(kernels::ToDouble(value)); }
  static float Widen(float value) { return value; }
  static float Widen(int32_t value) { return static_cast<float>(value); }
  static float Widen(uint8_t value) { return static_cast<float>(value); }

  void RunMemory() {
    Keep("tokens", inputs_.tokens, kRows);
    Keep("lengths", inputs_.lengths, kSamples);
    Keep("targets", inputs_.targets, kRows);
    T* const to = Elements(kSamples * 30);
    backend_.CopyRows(kSamples, kWidth, Elements(kRows * kWidth), kSeq * kWidth, to, 30);
    backend_.FillZero(to + 3, 5 * sizeof(T));
    Keep("rows", to, kSamples * 30);
    float* const wide = Floats(kWidth);
    backend_.FloatFromBf16(OnBackend(kernels::As<Bf16>(kernels::RandomFloats(kWidth, ++seed_))),
                           wide, kWidth);
    Keep("widened", wide, kWidth);
  }

  void RunEmbedding() {
    T* const out = Elements(kRows * kWidth);
    const auto wte = kernels::RandomFloats(kSymbols * kWidth, ++seed_);
    const auto wpe = kernels::RandomFloats(kSeq * kWidth, ++seed_);
    const auto forward = [&]<typename W>(const std::vector<W>& wte, const std::vector<W>& wpe) {
      backend_.EmbeddingForward(kernels::EmbeddingForwardArgs<W, T>{
          kSamples, kSeq, kWidth, inputs_.tokens, OnBackend(wte), OnBackend(wpe), out});
    };
    forward(wte, wpe);
    Keep("embedding", out, kRows * kWidth);
    if constexpr (std::is_same_v<T, Bf16>) {
      forward(kernels::As<T>(wte), kernels::As<T>(wpe));
      Keep("embedding of bf16", out, kRows * kWidth);
    }
    float* const dwte = Floats(kSymbols * kWidth);
    float* const dwpe = Floats(kSeq * kWidth);
    backend_.EmbeddingBackward({kSamples, kSeq, kWidth, inputs_.tokens, out, dwte, dwpe});
    Keep("dwte", dwte, kSymbols * kWidth);
    Keep("dwpe", dwpe, kSeq * kWidth);
  }

  void RunLinear() {
    const auto w = NewMatrix(kWidth, kOut, kernels::WeightOrder::kInOut);
    const T* const x = Elements(kRows * kWidth);
    const float* const bias = Floats(kOut);
    T* const pre = Elements(kRows * kOut);
    T* const y = Elements(kRows * kOut);
    backend_.LinearForward(*w, {kRows, x, bias, y, kOut});
    Keep("linear", y, kRows * kOut);
    for (const auto activation : {kernels::Activation::kGelu, kernels::Activation::kRelu}) {
      const std::string name = activation == kernels::Activation::kGelu ? "GELU" : "ReLU";
      backend_.LinearActivationForward(*w, {kRows, x, bias, activation, pre, y});
      Keep(name + " pre", pre, kRows * kOut);
      Keep(name, y, kRows * kOut);
      backend_.ActivationBackward(activation, kRows * kOut, Elements(kRows * kOut), pre, y);
      Keep(name + " backward", y, kRows * kOut);
    }
    RunGradients("linear", *w, x, kOut);
  }

  // Without and with accumulation.
  void RunGradients(const std::string& name, const WeightMatrix<T>& w, const T* x,
                    int64_t dy_stride) {
    const T* const dy = Rows(w.out(), dy_stride);
    T* const dx = Elements(kRows * w.in());
    float* const dw = Floats(w.in() * w.out());
    float* const dbias = Floats(w.out());
    for (const bool accumulate : {false, true}) {
      backend_.LinearInputGradient(w, {kRows, dy, dy_stride, accumulate, dx});
      Keep(name + (accumulate ? " dx +" : " dx"), dx, kRows * w.in());
      backend_.LinearWeightGradient(
          {w.in(), w.out(), w.order(), kRows, x, dy, dy_stride, accumulate, dw});
      Keep(name + (accumulate ? " dw +" : " dw"), dw, w.in() * w.out());
    }
    backend_.BiasGradient(kRows, w.out(), dy, dy_stride, dbias);
    Keep(name + " dbias", dbias, w.out());
  }

  void RunAttention() {
    const kernels::AttentionShape shape = {.batch = kSamples,
                                           .queries = kSeq,
                                           .keys = kSeq,
                                           .heads = kHeads,
                                           .head_dim = kWidth / kHeads,
                                           .key_counts = inputs_.lengths};
    const auto operands = [](auto* qkv) {
      return kernels::AttentionOperands<std::remove_pointer_t<decltype(qkv)>>{
          qkv, qkv + kWidth, qkv + 2 * kWidth, 3 * kWidth, 3 * kWidth};
    };
    const T* const qkv = Elements(kRows * 3 * kWidth);
    T* const out = Elements(kRows * kWidth);
    float* const log_sum_exp = Floats(shape.stats_size());
    T* const gradient = Elements(kRows * 3 * kWidth);
    backend_.AttentionForward({shape, operands(qkv), kDropout, kKey, out, log_sum_exp});
    Keep("attention", out, kRows * kWidth);
    Keep("log_sum_exp", log_sum_exp, shape.stats_size());
    backend_.AttentionBackward({shape, operands(qkv), kDropout, kKey, out, log_sum_exp,
                                Elements(kRows * kWidth), operands(gradient)});
    Keep("attention backward", gradient, kRows * 3 * kWidth);
  }

  static kernels::DropoutAddArgs<T> Dropout(const T* x, const T* residual, T* y) {
    return {kSamples, kSeq * kWidth, kWidth, x, /*bias=*/nullptr, residual, kDropout, kKey, y};
  }

  void RunLayerNorm() {
    constexpr int64_t kSize = kRows * kWidth;
    const T* const x = Elements(kSize);
    const T* const dy = Elements(kSize);
    const float* const gamma = Floats(kWidth);
    const float* const beta = Floats(kWidth);
    T* const y = Elements(kSize);
    T* const sum = Elements(kSize);
    float* const mean = Floats(kRows);
    float* const rstd = Floats(kRows);
    backend_.ResidualLayerNormForward(
        {Dropout(x, Elements(kSize), sum), gamma, beta, y, mean, rstd});
    Keep("residual sum", sum, kSize);
    Keep("residual norm", y, kSize);
    backend_.LayerNormForward({kRows, kWidth, x, gamma, beta, y, mean, rstd});
    Keep("norm", y, kSize);
    Keep("mean", mean, kRows);
    Keep("rstd", rstd, kRows);
    T* const dx = Elements(kSize);
    float* const dgamma = Floats(kWidth);
    float* const dbeta = Floats(kWidth);
    for (const bool accumulate : {false, true}) {
      backend_.LayerNormBackward(
          {kRows, kWidth, dy, x, gamma, mean, rstd, accumulate, dx, dgamma, dbeta});
      Keep(accumulate ? "norm dx +" : "norm dx", dx, kSize);
    }
    Keep("dgamma", dgamma, kWidth);
    Keep("dbeta", dbeta, kWidth);
  }

  void RunDropout() {
    constexpr int64_t kSize = kRows * kWidth;
    T* const y = Elements(kSize);
    backend_.DropoutAdd(Dropout(Elements(kSize), Elements(kSize), y));
    Keep("dropout", y, kSize);
    backend_.DropoutAdd(Dropout(Elements(kSize), /*residual=*/nullptr, y));
    Keep("dropout backward", y, kSize);
  }

  void RunHead(kernels::WeightOrder order, const std::string& name) {
    const int64_t stride = backend_.LogitsStride(kSymbols);
    EXPECT_GE(stride, kSymbols);
    const auto w = NewMatrix(kWidth, kSymbols, order);
    const T* const x = Elements(kRows * kWidth);
    float* const logits = Floats(kRows * stride);
    T* const gradient = Elements(kRows * stride);
    float* const losses = Floats(kRows);
    uint8_t* const correct = OnBackend(std::vector<uint8_t>(kRows, 9));
    for (const bool with_bias : {true, false}) {
      backend_.LogitsForward(*w,
                             {kRows, x, with_bias ? Floats(kSymbols) : nullptr, logits, stride});
      Keep(name + (with_bias ? " logits with bias" : " logits"), logits, kRows, kSymbols, stride);
    }
    const auto keep_losses = [&](const std::string& of) {
      Keep(of + " losses", losses, kRows);
      Keep(of + " correct", correct, kRows);
    };
    kernels::CrossEntropyArgs<T> args = {.rows = kRows,
                                         .vocab = kSymbols,
                                         .stride = stride,
                                         .logits = logits,
                                         .targets = inputs_.targets,
                                         .losses = losses,
                                         .correct = correct};
    backend_.CrossEntropy(args);
    keep_losses(name + " evaluation");
    args.objective = {.label_smoothing = 0.1f, .z_loss = 0.01f};
    args.gradient = gradient;
    backend_.CrossEntropy(args);
    keep_losses(name);
    Keep(name + " logits' gradient", gradient, kRows, kSymbols, stride);
    RunGradients(name, *w, x, stride);
  }

  Backend<T>& backend_;
  const Upload upload_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  typename Backend<T>::Inputs inputs_;
  uint32_t seed_ = 100;
  Results results_;
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_BACKEND_OPERATIONS_H_
