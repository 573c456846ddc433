// SPDX-License-Identifier: Apache-2.0
// Speed of a model on a GPU: forward and backward of all blocks, as in a worker between a pull and
// a push, compared with the GPU's peak in the same run (a copy, a large product).
//
//   bazel run --config=cuda //model/gpu:model_cuda_benchmark -- [--layers 12] [--width 768]
//       [--heads 12] [--context 1024] [--vocabulary 50257] [--batch 16] [--dropout 0]
//       [--precision bf16|fp32] [--weights fp32|bf16] [--recompute none|selective|full]
//       [--graphs auto|never|always] [--steps 20] [--json FILE]
//
// The defaults are GPT-2 124M. Weights are bound again before each step, so a step includes the
// rounding of FP32 matrices to bf16; gradients are FP32. Step times are the GPU's, from the end of
// one step to the end of the next, while the host queues ahead; `queued in` is the host's own time
// per step. Warm-up steps are not counted. Then a second model runs with events around each
// operation, for the table; there a kernel may wait for the host. Last, a small model with short
// kernels compares steps with and without CUDA graphs (model/backend/pass_graphs.h).
//
// Model FLOPs of a step, not counting recomputation:
//   tokens * (6 N + 6 * layers * width * (context + 1)),  N = all parameters without positions
// (the tied matrix of the head counts once); the second term is causal attention.
#include "kernels/cuda/device/cuda_benchmark.h"

#if TUG_CUDA || TUG_CUDA_EMULATED
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/status_macros.h"
#include "kernels/bf16.h"
#include "kernels/cuda/benchmark/cuda_peaks.h"
#include "model/backend/cuda_device.h"
#include "model/backend/cuda_op_profile.h"
#include "model/backend/op_table.h"
#include "model/layout.h"
#include "model/model.h"
#include "model/transformer/create_model.h"
#include "model/transformer/memory.h"
#include "nlohmann/json.hpp"
#endif

namespace tug {
namespace {

using kernels::cuda::CudaBenchmark;

#if TUG_CUDA || TUG_CUDA_EMULATED

using kernels::Bf16;
using kernels::cuda::DeviceBuffer;
using kernels::cuda::Event;
using kernels::cuda::EventUse;
using Json = nlohmann::ordered_json;

const int kWarmup = static_cast<int>(CudaBenchmark::Size(5, 1));

struct Arguments {
  int64_t layers = CudaBenchmark::Size(12, 1);
  int64_t width = CudaBenchmark::Size(768, 32);
  int64_t heads = CudaBenchmark::Size(12, 1);
  int64_t context = CudaBenchmark::Size(1024, 16);
  int64_t vocabulary = CudaBenchmark::Size(50257, 61);
  int batch = static_cast<int>(CudaBenchmark::Size(16, 2));
  int steps = static_cast<int>(CudaBenchmark::Size(20, 2));
  double dropout = 0;
  std::string precision = "bf16";
  std::string weights = "fp32";
  std::string recompute = "none";
  std::string graphs = "auto";
  std::string json;

  int64_t tokens() const { return batch * context; }
};

GraphUse GraphUseOf(const Arguments& arguments) {
  return arguments.graphs == "never"    ? GraphUse::kNever
         : arguments.graphs == "always" ? GraphUse::kAlways
                                        : GraphUse::kWhereLaunchesDominate;
}

ModelOptions OptionsOf(const Arguments& arguments) {
  ModelOptions options;
  ModelConfig& config = options.config;
  config.set_family(ModelConfig::DECODER);
  config.set_norm(ModelConfig::PRE);
  config.set_activation(ModelConfig::GELU);
  config.set_layers(static_cast<uint32_t>(arguments.layers));
  config.set_width(static_cast<uint32_t>(arguments.width));
  config.set_mlp_width(static_cast<uint32_t>(4 * arguments.width));
  config.set_heads(static_cast<uint32_t>(arguments.heads));
  config.set_context(static_cast<uint32_t>(arguments.context));
  config.set_dropout(arguments.dropout);
  config.set_tied_head(true);
  config.set_bias(true);
  options.train.set_precision(arguments.precision == "bf16" ? TrainConfig::BF16
                                                            : TrainConfig::FP32);
  options.train.set_recompute(arguments.recompute == "full"        ? TrainConfig::FULL
                              : arguments.recompute == "selective" ? TrainConfig::SELECTIVE
                                                                   : TrainConfig::NONE);
  options.symbols = static_cast<uint32_t>(arguments.vocabulary);
  options.max_micro_batch = arguments.batch;
  return options;
}

// Initial weights, from a table of normal numbers that is read cyclically.
std::vector<float> SomeWeights(const BlockSpec& block) {
  static const std::vector<float> normal = [] {
    std::vector<float> values(size_t{1} << 20);
    std::mt19937 random(1);
    std::normal_distribution<float> distribution;
    for (float& value : values) value = distribution(random);
    return values;
  }();
  std::vector<float> weights;
  weights.reserve(ElementCount(block));
  for (const TensorSpec& tensor : block.tensors()) {
    for (uint64_t i = 0; i < ElementCount(tensor); ++i) {
      weights.push_back(tensor.init_mean() +
                        tensor.init_std() * normal[weights.size() % normal.size()]);
    }
  }
  return weights;
}

// A model with weights, gradients and a batch of random tokens.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const Arguments& arguments,
                                                         CudaDevice& device, OpProfile* profile) {
    ModelOptions options = OptionsOf(arguments);
    options.profile = profile;
    ASSIGN_OR_RETURN(std::unique_ptr<Model> model, CreateModel(options, device));
    auto trainer = std::make_unique<Trainer>(arguments, device, std::move(model));
    for (const BlockSpec& block : trainer->model_->blocks().blocks()) {
      RETURN_IF_ERROR(trainer->AddBlock(block, arguments.weights == "bf16"));
    }
    return trainer;
  }
  Trainer(const Arguments& arguments, CudaDevice& device, std::unique_ptr<Model> model)
      : device_(device), model_(std::move(model)) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int32_t> symbol(0,
                                                  static_cast<int32_t>(arguments.vocabulary) - 1);
    for (int64_t i = 0; i < arguments.tokens(); ++i) {
      tokens_.push_back(symbol(random));
      targets_.push_back(symbol(random));
    }
    batch_.samples = arguments.batch;
    batch_.tokens = tokens_;
    batch_.targets = targets_;
    batch_.training = true;
  }

  // Queues one step.
  void Step() {
    for (int b = 0; b < model_->num_blocks(); ++b) {
      const auto index = static_cast<size_t>(b);
      model_->BindWeights(b, weights_[index]);
      const DeviceBuffer& gradient = gradients_[index];
      model_->BindGradient(b, {gradient.As<float>(), gradient.size_bytes() / sizeof(float)});
    }
    model_->Start(batch_);
    for (int b = 0; b < model_->num_blocks(); ++b) model_->Forward(b);
    for (int b = model_->num_blocks() - 1; b >= 0; --b) model_->Backward(b);
  }
  absl::Status Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
    return model_->Synchronize();
  }
  // Loss per token of the last step. INTERNAL: it is not finite.
  absl::StatusOr<double> Loss() {
    RETURN_IF_ERROR(model_->Synchronize());
    const LossSums sums = model_->losses();
    const double loss = sums.loss / static_cast<double>(sums.targets);
    if (!std::isfinite(loss)) return absl::InternalError("the loss is not finite");
    return loss;
  }

  const kernels::cuda::Stream& stream() const { return device_.compute_stream(); }
  uint64_t parameters() const { return ElementCount(model_->blocks()); }

 private:
  absl::Status AddBlock(const BlockSpec& block, bool narrow) {
    const std::vector<float> wide = SomeWeights(block);
    const size_t n = wide.size();
    std::vector<Bf16> values(narrow ? n : 0);
    if (narrow) kernels::Bf16FromFloat(wide.data(), values.data(), static_cast<int64_t>(n));
    const size_t bytes = n * (narrow ? sizeof(Bf16) : sizeof(float));
    ASSIGN_OR_RETURN(DeviceBuffer memory, DeviceBuffer::Create(bytes));
    const void* const from =
        narrow ? static_cast<const void*>(values.data()) : static_cast<const void*>(wide.data());
    RETURN_IF_ERROR(kernels::cuda::CopyToDeviceAsync(memory.data(), from, bytes, stream()));
    RETURN_IF_ERROR(stream().Synchronize());
    if (narrow) {
      weights_.push_back({.bf16 = {memory.As<Bf16>(), n}});
    } else {
      weights_.push_back({.fp32 = {memory.As<float>(), n}});
    }
    memory_.push_back(std::move(memory));
    ASSIGN_OR_RETURN(DeviceBuffer gradient, DeviceBuffer::Create(n * sizeof(float)));
    gradients_.push_back(std::move(gradient));
    return absl::OkStatus();
  }

  CudaDevice& device_;
  std::vector<DeviceBuffer> memory_, gradients_;  // by block
  std::vector<WeightsView> weights_;              // views of memory_
  const std::unique_ptr<Model> model_;
  std::vector<int32_t> tokens_, targets_;
  MicroBatch batch_;
};

// GPU times of `count` steps that are queued one after another.
absl::StatusOr<std::vector<double>> StepMilliseconds(Trainer& trainer, int count) {
  std::vector<Event> ends;
  for (int i = 0; i <= count; ++i) {
    ASSIGN_OR_RETURN(Event event, Event::Create(EventUse::kTime));
    ends.push_back(std::move(event));
  }
  RETURN_IF_ERROR(ends[0].Record(trainer.stream()));
  for (int i = 1; i <= count; ++i) {
    trainer.Step();
    RETURN_IF_ERROR(ends[static_cast<size_t>(i)].Record(trainer.stream()));
  }
  RETURN_IF_ERROR(trainer.Steps(0));
  std::vector<double> times;
  for (size_t i = 1; i < ends.size(); ++i) {
    ASSIGN_OR_RETURN(const absl::Duration time, TimeBetween(ends[i - 1], ends[i]));
    times.push_back(std::max(absl::ToDoubleMilliseconds(time), 1e-6));
  }
  return times;
}

// Median of the host's time to queue a step while the GPU is idle.
absl::StatusOr<double> QueueMilliseconds(Trainer& trainer, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    trainer.Step();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    RETURN_IF_ERROR(trainer.Steps(0));
  }
  return Median(times);
}

double ModelFlops(const Arguments& arguments, uint64_t parameters) {
  const auto layers = static_cast<double>(arguments.layers);
  const auto width = static_cast<double>(arguments.width);
  const auto context = static_cast<double>(arguments.context);
  const double weights = static_cast<double>(parameters) - context * width;
  return static_cast<double>(arguments.tokens()) *
         (6 * weights + 6 * layers * width * (context + 1));
}

absl::StatusOr<uint64_t> FreeBytes() {
  ASSIGN_OR_RETURN(const kernels::cuda::DeviceFacts facts, kernels::cuda::GetDeviceFacts());
  return facts.free_bytes;
}

// Times steps without a profile: the benchmark's main result.
absl::Status TimeSteps(const Arguments& arguments, CudaDevice& device, const OpPeaks& peaks,
                       Json& json) {
  ASSIGN_OR_RETURN(const uint64_t free_before, FreeBytes());
  ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(arguments, device, /*profile=*/nullptr));
  RETURN_IF_ERROR(trainer->Steps(kWarmup));
  ASSIGN_OR_RETURN(const std::vector<double> times, StepMilliseconds(*trainer, arguments.steps));
  ASSIGN_OR_RETURN(const double queue_ms, QueueMilliseconds(*trainer, kWarmup));
  ASSIGN_OR_RETURN(const double loss, trainer->Loss());
  ASSIGN_OR_RETURN(const uint64_t free_after, FreeBytes());

  const double step_ms = Median(times);
  const double tokens_per_second = static_cast<double>(arguments.tokens()) / step_ms * 1e3;
  const double flops_per_second = ModelFlops(arguments, trainer->parameters()) / step_ms * 1e3;
  const auto memory = static_cast<double>(free_before - std::min(free_before, free_after));
  const auto activations = static_cast<double>(
      PredictDeviceBytes(OptionsOf(arguments), arguments.weights == "bf16").activations);
  std::printf("\n%lld layers of width %lld, %lld heads, vocabulary %lld: %.1fM parameters\n",
              static_cast<long long>(arguments.layers), static_cast<long long>(arguments.width),
              static_cast<long long>(arguments.heads), static_cast<long long>(arguments.vocabulary),
              static_cast<double>(trainer->parameters()) * 1e-6);
  std::printf("%d samples of %lld tokens, %s, weights %s, recompute %s, dropout %g\n",
              arguments.batch, static_cast<long long>(arguments.context),
              arguments.precision.c_str(), arguments.weights.c_str(), arguments.recompute.c_str(),
              arguments.dropout);
  std::printf("step      %9.2f ms (median of %d; %.2f to %.2f), queued in %.2f ms\n", step_ms,
              arguments.steps, *std::min_element(times.begin(), times.end()),
              *std::max_element(times.begin(), times.end()), queue_ms);
  std::printf("tokens/s  %9.0f\n", tokens_per_second);
  std::printf("graphs    %9llu passes of %d steps\n",
              static_cast<unsigned long long>(device.graph_launches()),
              2 * kWarmup + arguments.steps);
  std::printf("model     %9.1f TFLOP/s, %.1f%% of the square product's\n", flops_per_second * 1e-12,
              100 * flops_per_second / peaks.flops_per_second);
  std::printf("memory    %9.2f GB, of which activations %.2f GB\n", memory * 1e-9,
              activations * 1e-9);
  std::printf("loss      %9.3f per token\n\n", loss);
  json["step_ms"] = times;
  json["queue_ms"] = queue_ms;
  json["tokens_per_second"] = tokens_per_second;
  json["model_tflops"] = flops_per_second * 1e-12;
  json["memory_gb"] = memory * 1e-9;
  json["loss"] = loss;
  return absl::OkStatus();
}

absl::Status TimeOperations(const Arguments& arguments, CudaDevice& device, const OpPeaks& peaks,
                            Json& json) {
  CudaOpProfile profile(device.compute_stream());
  ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(arguments, device, &profile));
  RETURN_IF_ERROR(trainer->Steps(kWarmup));
  RETURN_IF_ERROR(profile.Collect());
  profile.Clear();
  ASSIGN_OR_RETURN(const std::vector<double> times, StepMilliseconds(*trainer, arguments.steps));
  RETURN_IF_ERROR(profile.Collect());
  double step_ms = 0;
  for (const double time : times) step_ms += time / arguments.steps;
  std::printf("By operation, %.2f ms per step with events around each:\n", step_ms);
  PrintOpTable(profile, arguments.steps, step_ms, peaks);
  for (size_t op = 0; op < kOps; ++op) {
    const OpProfile::Entry& entry = profile.entries()[op];
    const double ms = std::chrono::duration<double, std::milli>(entry.time).count();
    json["operations"][kOpNames[op]] = {{"ms", ms / arguments.steps},
                                        {"flops", entry.work.flops / arguments.steps},
                                        {"bytes", entry.work.bytes / arguments.steps}};
  }
  return absl::OkStatus();
}

// Times a small model, most of whose kernels take longer to launch than to run.
absl::Status TimeGraphs(Json& json) {
  Arguments small{.layers = CudaBenchmark::Size(6, 1),
                  .width = CudaBenchmark::Size(256, 32),
                  .heads = CudaBenchmark::Size(4, 1),
                  .context = CudaBenchmark::Size(128, 16),
                  .vocabulary = CudaBenchmark::Size(512, 61),
                  .batch = static_cast<int>(CudaBenchmark::Size(8, 2))};
  std::printf("\nLaunches, with %lld layers of width %lld, %d samples of %lld tokens:\n",
              static_cast<long long>(small.layers), static_cast<long long>(small.width),
              small.batch, static_cast<long long>(small.context));
  for (const char* const graphs : {"never", "always"}) {
    small.graphs = graphs;
    ASSIGN_OR_RETURN(const auto device, NewCudaDevice(0, GraphUseOf(small)));
    ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(small, *device, /*profile=*/nullptr));
    RETURN_IF_ERROR(trainer->Steps(kWarmup));
    ASSIGN_OR_RETURN(const std::vector<double> times, StepMilliseconds(*trainer, small.steps));
    ASSIGN_OR_RETURN(const double queue_ms, QueueMilliseconds(*trainer, kWarmup));
    RETURN_IF_ERROR(trainer->Loss().status());
    std::printf("graphs %-7s step %7.3f ms (%.3f to %.3f), queued in %.3f ms\n", graphs,
                Median(times), *std::min_element(times.begin(), times.end()),
                *std::max_element(times.begin(), times.end()), queue_ms);
    json["small_model"][graphs] = {{"step_ms", times}, {"queue_ms", queue_ms}};
  }
  return absl::OkStatus();
}

absl::Status Run(CudaBenchmark& benchmark, const Arguments& arguments) {
  ASSIGN_OR_RETURN(auto products, kernels::cuda::MatMulHandle::Create());
  RETURN_IF_ERROR(TimeCopy(benchmark));
  if (arguments.precision == "bf16") {
    RETURN_IF_ERROR(TimeSquareProduct<Bf16>(benchmark, products));
  } else {
    RETURN_IF_ERROR(TimeSquareProduct<float>(benchmark, products));
  }
  RETURN_IF_ERROR(benchmark.stream().Synchronize());
  const OpPeaks peaks = {.flops_per_second = benchmark.first_flops_per_second(),
                         .bytes_per_second = benchmark.first_bytes_per_second()};
  Json json = {{"product_tflops", peaks.flops_per_second * 1e-12},
               {"copy_gb_per_second", peaks.bytes_per_second * 1e-9}};
  ASSIGN_OR_RETURN(const auto device, NewCudaDevice(0, GraphUseOf(arguments)));
  RETURN_IF_ERROR(TimeSteps(arguments, *device, peaks, json));
  RETURN_IF_ERROR(TimeOperations(arguments, *device, peaks, json));
  RETURN_IF_ERROR(TimeGraphs(json));
  if (arguments.json.empty()) return absl::OkStatus();
  std::ofstream file(arguments.json);
  file << json.dump(1) << std::endl;
  if (!file) return absl::UnavailableError("cannot write " + arguments.json);
  return absl::OkStatus();
}

void AddOptions(CLI::App& app, Arguments& arguments) {
  const auto number = [&app](const char* name, auto& value) {
    app.add_option(name, value)->check(CLI::Range(1, 1 << 20))->capture_default_str();
  };
  number("--layers", arguments.layers);
  number("--width", arguments.width);
  number("--heads", arguments.heads);
  number("--context", arguments.context);
  number("--vocabulary", arguments.vocabulary);
  number("--batch", arguments.batch);
  number("--steps", arguments.steps);
  app.add_option("--dropout", arguments.dropout)->capture_default_str();
  const auto choice = [&app](const char* name, std::string& value, std::vector<std::string> of) {
    app.add_option(name, value)->check(CLI::IsMember(std::move(of)))->capture_default_str();
  };
  choice("--precision", arguments.precision, {"fp32", "bf16"});
  choice("--weights", arguments.weights, {"fp32", "bf16"});
  choice("--recompute", arguments.recompute, {"none", "selective", "full"});
  choice("--graphs", arguments.graphs, {"auto", "never", "always"});
  app.add_option("--json", arguments.json, "JSON file for the figures");
}

#endif

}  // namespace
}  // namespace tug

#if TUG_CUDA || TUG_CUDA_EMULATED

int main(int argc, char** argv) {
  tug::Arguments arguments;
  CLI::App app("Speed of a model on a GPU, and where its time goes");
  tug::AddOptions(app, arguments);
  CLI11_PARSE(app, argc, argv);
  if (arguments.weights == "bf16" && arguments.precision != "bf16") {
    std::fprintf(stderr, "--weights bf16 needs --precision bf16\n");
    return 2;
  }
  return tug::kernels::cuda::RunCudaBenchmark(
      [&](tug::CudaBenchmark& benchmark) { return tug::Run(benchmark, arguments); });
}

#else

// Without CUDA there is no GPU, and nothing to run.
int main() {
  return tug::kernels::cuda::RunCudaBenchmark(
      [](tug::CudaBenchmark&) { return tug::kernels::cuda::CheckGpu(); });
}

#endif
