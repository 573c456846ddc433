// SPDX-License-Identifier: Apache-2.0
// Speed of training and time by operation: one forward and backward pass of the models of the speed
// comparison, with a table of the kinds of operations.
//
//   bazel run //model/transformer:model_benchmark -- [--threads 2] [--steps 5] [--model gpt10m]
//       [--dropout 0] [--recompute none|selective|full] [--precision fp32|bf16]
//   bazel run //model/transformer:model_benchmark -- --settings ...
//
// With --settings: every recomputation setting, its memory compared with the formula of
// model/transformer/memory.h and the literature's, and its time compared with `none`.
//
// The first pass is not counted. Times of operations are those of the compute thread, so they add
// up to the pass; the rest is the model's own code. GFLOP/s and GB/s are totals of all threads.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/cpu/thread_pool.h"
#include "base/median.h"
#include "base/memory/lease.h"
#include "base/memory/process_memory.h"
#include "model/backend/op_table.h"
#include "model/layout.h"
#include "model/model.h"
#include "model/op_profile.h"
#include "model/transformer/create_model.h"
#include "model/transformer/memory.h"

namespace tug {
namespace {

using Clock = std::chrono::steady_clock;

struct Workload {
  ModelConfig::Family family;
  uint32_t layers, width, heads, context, symbols;
  int samples;
};

const std::map<std::string, Workload> kWorkloads = {
    // 4 layers of 128 at tinyshakespeare's 65 characters.
    {"tiny", {ModelConfig::DECODER, 4, 128, 4, 64, 65, 12}},
    {"gpt10m", {ModelConfig::DECODER, 6, 384, 6, 256, 256, 8}},
    {"gpt30m", {ModelConfig::DECODER, 6, 384, 6, 256, 50257, 8}},
    {"gpt124m", {ModelConfig::DECODER, 12, 768, 12, 256, 50257, 2}},
    // The lectures' classifier.
    {"bert", {ModelConfig::ENCODER, 2, 256, 4, 128, 30522, 32}},
};

struct Arguments {
  std::string model = "gpt10m";
  std::string precision = "bf16";
  std::string recompute = "none";
  int threads = 2;
  int steps = 5;
  double dropout = 0;
  bool settings = false;
};

ModelOptions OptionsOf(const Arguments& arguments) {
  const Workload& workload = kWorkloads.at(arguments.model);
  const bool encoder = workload.family == ModelConfig::ENCODER;
  ModelOptions options;
  ModelConfig& config = options.config;
  config.set_family(workload.family);
  config.set_norm(encoder ? ModelConfig::POST : ModelConfig::PRE);
  config.set_activation(encoder ? ModelConfig::RELU : ModelConfig::GELU);
  config.set_layers(workload.layers);
  config.set_width(workload.width);
  config.set_mlp_width(4 * workload.width);
  config.set_heads(workload.heads);
  config.set_context(workload.context);
  config.set_dropout(arguments.dropout);
  config.set_tied_head(!encoder);
  config.set_bias(true);
  options.train.set_precision(arguments.precision == "bf16" ? TrainConfig::BF16
                                                            : TrainConfig::FP32);
  options.train.set_recompute(arguments.recompute == "full"        ? TrainConfig::FULL
                              : arguments.recompute == "selective" ? TrainConfig::SELECTIVE
                                                                   : TrainConfig::NONE);
  options.symbols = workload.symbols;
  options.classes = encoder ? 2 : 0;
  options.max_micro_batch = workload.samples;
  return options;
}

// A model with initial weights, gradients, and random tokens.
class Trainer {
 public:
  Trainer(const ModelOptions& options, ThreadPool& pool) : model_(*CreateModel(options, pool)) {
    std::mt19937 random(1);
    for (const BlockSpec& block : model_->blocks().blocks()) {
      weights_.emplace_back(ElementCount(block) * sizeof(float));
      gradients_.emplace_back(ElementCount(block) * sizeof(float));
      size_t offset = 0;
      for (const TensorSpec& tensor : block.tensors()) {
        std::normal_distribution<float> normal(tensor.init_mean(),
                                               std::max(tensor.init_std(), 1e-6f));
        for (uint64_t i = 0; i < ElementCount(tensor); ++i) {
          weights_.back().floats()[offset++] = normal(random);
        }
      }
    }
    const bool encoder = options.config.family() == ModelConfig::ENCODER;
    std::uniform_int_distribution<int32_t> symbol(0, static_cast<int32_t>(options.symbols) - 1);
    const int64_t count = options.max_micro_batch * int64_t{options.config.context()};
    for (int64_t i = 0; i < count; ++i) tokens_.push_back(symbol(random));
    if (!encoder) targets_ = tokens_;
    if (encoder) targets_.assign(static_cast<size_t>(options.max_micro_batch), 0);
    batch_.samples = options.max_micro_batch;
    batch_.tokens = tokens_;
    batch_.targets = targets_;
    batch_.training = true;
  }

  // Weights are bound again in every step, so they are packed in every step.
  void Step() {
    for (int b = 0; b < model_->num_blocks(); ++b) {
      const auto index = static_cast<size_t>(b);
      model_->BindWeights(b, {.fp32 = std::as_const(weights_[index]).floats()});
      model_->BindGradient(b, gradients_[index].floats());
    }
    model_->Start(batch_);
    for (int b = 0; b < model_->num_blocks(); ++b) model_->Forward(b);
    for (int b = model_->num_blocks() - 1; b >= 0; --b) model_->Backward(b);
  }

  uint64_t tokens() const { return tokens_.size(); }
  uint64_t parameters() const { return ElementCount(model_->blocks()); }

 private:
  const std::unique_ptr<Model> model_;
  std::vector<AlignedBuffer> weights_, gradients_;
  std::vector<int32_t> tokens_, targets_;
  MicroBatch batch_;
};

double Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

void Run(const Arguments& arguments) {
  ThreadPool pool(arguments.threads);
  OpProfile profile;
  ModelOptions options = OptionsOf(arguments);
  options.profile = &profile;
  Trainer trainer(options, pool);
  trainer.Step();
  profile.Clear();
  std::vector<double> times;
  for (int step = 0; step < arguments.steps; ++step) {
    const Clock::time_point begin = Clock::now();
    trainer.Step();
    times.push_back(Milliseconds(Clock::now() - begin));
  }
  double mean = 0;
  for (const double time : times) mean += time / arguments.steps;
  const double median = Median(times);
  std::printf(
      "%s, %s, recompute %s, dropout %g, %d threads: %.1fM parameters, %.1f MB of activations\n"
      "%.2f ms per pass (median of %d), %.0f tokens/s\n\n",
      arguments.model.c_str(), arguments.precision.c_str(), arguments.recompute.c_str(),
      arguments.dropout, arguments.threads, static_cast<double>(trainer.parameters()) * 1e-6,
      static_cast<double>(PredictActivationBytes(options)) * 1e-6, median, arguments.steps,
      static_cast<double>(trainer.tokens()) / median * 1e3);
  PrintOpTable(profile, arguments.steps, mean);
}

struct Setting {
  const char* name;
  TrainConfig::Recompute recompute;
  uint32_t layers;
  // Measured values.
  uint64_t touched = 0;
  std::vector<double> times = {};
};

// Measures the activation memory that a step touches, and the times of some steps.
void Measure(const ModelOptions& options, int steps, ThreadPool& pool, Setting& setting) {
  malloc_trim(0);  // memory freed by earlier models
  const uint64_t before = PrivateMemoryBytes();
  Trainer trainer(options, pool);
  trainer.Step();
  malloc_trim(0);  // small scratch of kernels
  const uint64_t parameters = trainer.parameters() * 2 * sizeof(float);
  setting.touched = PrivateMemoryBytes() - before - parameters - PackedWeightBytes(options);
  for (int step = 0; step < steps; ++step) {
    const Clock::time_point begin = Clock::now();
    trainer.Step();
    setting.times.push_back(Milliseconds(Clock::now() - begin));
  }
}

// Settings alternate, so that drift of the machine affects all of them.
void RunSettings(const Arguments& arguments) {
  ThreadPool pool(arguments.threads);
  ModelOptions options = OptionsOf(arguments);
  const uint32_t half = std::max(1u, options.config.layers() / 2);
  std::vector<Setting> settings = {{"none", TrainConfig::NONE, 1},
                                   {"selective", TrainConfig::SELECTIVE, 1},
                                   {"full", TrainConfig::FULL, 1},
                                   {"uniform, half of the layers", TrainConfig::UNIFORM, half},
                                   {"block, half of the layers", TrainConfig::BLOCK, half}};
  const auto apply = [&options](const Setting& setting) {
    options.train.set_recompute(setting.recompute);
    options.train.set_recompute_layers(setting.layers);
  };
  {
    Setting first = settings[0];  // memory that libraries and threads keep, once
    apply(first);
    Measure(options, 0, pool, first);
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (Setting& setting : settings) {
      apply(setting);
      Measure(options, arguments.steps, pool, setting);
    }
  }
  std::printf("%s, %s, dropout %g: activations; 34 s b h + 5 a s^2 b per layer: %.1f MB\n",
              arguments.model.c_str(), arguments.precision.c_str(), arguments.dropout,
              static_cast<double>(LecturesActivationBytes(options)) * 1e-6);
  std::printf("%-28s %12s %12s %7s %12s %7s\n", "", "formula MB", "touched MB", "ratio",
              "ms per pass", "ratio");
  const double none_ms = Median(settings[0].times);
  for (const Setting& setting : settings) {
    apply(setting);
    const double formula = static_cast<double>(PredictActivationBytes(options));
    const double touched = static_cast<double>(setting.touched);
    const double ms = Median(setting.times);
    std::printf("%-28s %12.1f %12.1f %7.3f %12.1f %7.2f\n", setting.name, formula * 1e-6,
                touched * 1e-6, touched / formula, ms, ms / none_ms);
  }
}

}  // namespace
}  // namespace tug

int main(int argc, char** argv) {
  tug::Arguments arguments;
  CLI::App app("Speed of training, and where its time goes");
  app.add_option("--model", arguments.model)
      ->check(CLI::IsMember({"tiny", "gpt10m", "gpt30m", "gpt124m", "bert"}))
      ->capture_default_str();
  app.add_option("--precision", arguments.precision)
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_option("--recompute", arguments.recompute)
      ->check(CLI::IsMember({"none", "selective", "full"}))
      ->capture_default_str();
  app.add_option("--threads", arguments.threads)->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--steps", arguments.steps)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--dropout", arguments.dropout)
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  app.add_flag("--settings", arguments.settings, "All settings of recomputation");
  CLI11_PARSE(app, argc, argv);
  if (arguments.settings) {
    tug::RunSettings(arguments);
  } else {
    tug::Run(arguments);
  }
  return 0;
}
