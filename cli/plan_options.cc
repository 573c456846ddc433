#include "cli/plan_options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cli/experiment_arguments.h"
#include "experiment/link_plan.h"

namespace tug {
namespace {

// Where nothing is said. The GPU is an A100 of 80 GB; of its peak in bf16, 312 TFLOPS, the lectures
// count on 160, as Megatron-LM achieves.
constexpr double kGpuMemoryGb = 80;
constexpr double kPeakTflops = 312;
constexpr double kUtilization = 160 / kPeakTflops;
constexpr uint32_t kGpus = 64;
constexpr char kLink[] = "400gbit";       // InfiniBand NDR
constexpr char kHostLink[] = "2400gbit";  // NVLink 3.0, each way
constexpr double kLatencyUs = 5;
constexpr double kDays = 30;
constexpr uint64_t kContext = 2048;
constexpr uint64_t kVocabulary = 50257;  // GPT-2's and GPT-3's

// They keep counts exact in a double, and layouts small.
constexpr double kMostParameters = 1e15, kMostTokens = 1e18, kMostGpus = 1e7;
constexpr double kMostLayers = 65536, kMostWidth = 1 << 20, kMostVocabulary = 1e8;

absl::Status Refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status CheckShapeNumbers(const PlanOptions& o) {
  if (o.parameters) RETURN_IF_ERROR(CheckNumber("--parameters", *o.parameters, 1, kMostParameters));
  const auto check = [](const char* option, const std::optional<uint64_t>& value, double most) {
    return value ? CheckNumber(option, static_cast<double>(*value), 1, most) : absl::OkStatus();
  };
  RETURN_IF_ERROR(check("--layers", o.layers, kMostLayers));
  RETURN_IF_ERROR(check("--width", o.width, kMostWidth));
  RETURN_IF_ERROR(check("--heads", o.heads, kMostWidth));
  RETURN_IF_ERROR(check("--context", o.context, kMostVocabulary));
  return check("--vocabulary", o.vocabulary, kMostVocabulary);
}

absl::Status CheckClusterNumbers(const PlanOptions& o) {
  RETURN_IF_ERROR(CheckNumber("--gpus", o.gpus.value_or(1), 1, kMostGpus));
  RETURN_IF_ERROR(CheckNumber("--tensor", o.tensor.value_or(1), 1, kMostGpus));
  RETURN_IF_ERROR(CheckNumber("--pipeline", o.pipeline.value_or(1), 1, kMostGpus));
  RETURN_IF_ERROR(CheckNumber("--memory-gb", o.memory_gb.value_or(1), 1e-3, 1e6));
  RETURN_IF_ERROR(CheckNumber("--tflops", o.tflops.value_or(1), 1e-6, 1e9));
  RETURN_IF_ERROR(CheckNumber("--utilization", o.utilization.value_or(1), 1e-6, 1));
  RETURN_IF_ERROR(CheckNumber("--latency-us", o.latency_us.value_or(0), 0, 1e9));
  RETURN_IF_ERROR(CheckNumber("--tokens", o.tokens.value_or(1), 1, kMostTokens));
  RETURN_IF_ERROR(CheckNumber("--days", o.days.value_or(1), 1e-3, 1e6));
  RETURN_IF_ERROR(CheckNumber("--batch-tokens", o.batch_tokens.value_or(1), 1, kMostTokens));
  RETURN_IF_ERROR(CheckNumber("--micro-batch", o.micro_batch.value_or(1), 1, 1e6));
  RETURN_IF_ERROR(CheckNumber("--activations-gb", o.activations_gb.value_or(0), 0, 1e9));
  return CheckNumber("--buffers-gb", o.buffers_gb.value_or(0), 0, 1e9);
}

absl::Status ResolveModel(const PlanOptions& o, PlanInputs& plan) {
  RETURN_IF_ERROR(CheckShapeNumbers(o));
  plan.context = o.context.value_or(kContext);
  if (o.layers || o.width || o.heads) {
    if (!o.layers || !o.width || !o.heads) {
      return Refuse("a model's shape is --layers, --width and --heads: give all three");
    }
    if (*o.width % *o.heads != 0) {
      return Refuse(absl::StrCat("--heads ", *o.heads, ": a divisor of --width ", *o.width));
    }
    plan.shape = TransformerShape{.layers = *o.layers,
                                  .width = *o.width,
                                  .heads = *o.heads,
                                  .context = plan.context,
                                  .vocabulary = o.vocabulary.value_or(kVocabulary)};
  }
  if (!o.parameters && !plan.shape) {
    return Refuse(
        "there is no model to plan: give --preset gpt3, a job file, --parameters N, or --layers, "
        "--width and --heads");
  }
  plan.parameters =
      o.parameters ? *o.parameters : static_cast<double>(DecoderParameters(*plan.shape));
  const std::string precision = o.precision.value_or("mixed");
  if (precision != "mixed" && precision != "fp32") {
    return Refuse(absl::StrCat("--precision ", precision, ": mixed or fp32"));
  }
  plan.mixed = precision == "mixed";
  plan.states = plan.mixed ? kMixedPrecision : kFullPrecision;
  return absl::OkStatus();
}

// 1, 2, 4 and so on, and as many as there are workers.
std::vector<uint32_t> UpTo(uint32_t workers) {
  std::vector<uint32_t> servers;
  for (uint32_t s = 1; s < workers; s *= 2) servers.push_back(s);
  servers.push_back(workers);
  return servers;
}

absl::Status ResolveParallelism(const PlanOptions& o, PlanInputs& plan) {
  plan.gpus = o.gpus.value_or(kGpus);
  plan.tensor = o.tensor.value_or(1);
  plan.pipeline = o.pipeline.value_or(1);
  if (plan.shape && plan.shape->heads % plan.tensor != 0) {
    return Refuse(absl::StrCat("--tensor ", plan.tensor, ": a divisor of the ", plan.shape->heads,
                               " heads, which it deals out"));
  }
  if (plan.shape && plan.shape->layers % plan.pipeline != 0) {
    return Refuse(absl::StrCat("--pipeline ", plan.pipeline, ": a divisor of the ",
                               plan.shape->layers, " layers, which it deals out"));
  }
  const uint64_t group = uint64_t{plan.tensor} * plan.pipeline;
  if (plan.gpus % group != 0) {
    return Refuse(absl::StrCat("--gpus ", plan.gpus, ": a multiple of --tensor x --pipeline = ",
                               group, ", which hold the model together"));
  }
  plan.servers = o.servers.value_or(UpTo(plan.data_parallel()));
  for (const uint32_t servers : plan.servers) {
    RETURN_IF_ERROR(CheckNumber("--servers", servers, 1, kMostGpus));
  }
  std::sort(plan.servers.begin(), plan.servers.end());
  plan.servers.erase(std::unique(plan.servers.begin(), plan.servers.end()), plan.servers.end());
  return absl::OkStatus();
}

absl::StatusOr<LinkCost> LinkOf(const char* option, const std::string& rate, double latency_us) {
  const absl::StatusOr<double> bits_per_second = ParseLinkRate(rate);
  if (!bits_per_second.ok()) {
    return Refuse(absl::StrCat(option, " ", rate, ": a rate such as 100mbit or 400gbit"));
  }
  return LinkCost{.alpha = latency_us * 1e-6, .beta = 8 / *bits_per_second, .gamma = 0};
}

absl::Status ResolveHardware(const PlanOptions& o, PlanInputs& plan) {
  plan.gpu_memory_bytes = o.memory_gb.value_or(kGpuMemoryGb) * 1e9;
  plan.peak_flops = o.tflops.value_or(kPeakTflops) * 1e12;
  plan.utilization = o.utilization.value_or(kUtilization);
  plan.link_text = o.link.value_or(kLink);
  plan.host_link_text = o.host_link.value_or(kHostLink);
  const double latency_us = o.latency_us.value_or(kLatencyUs);
  ASSIGN_OR_RETURN(plan.link, LinkOf("--link", plan.link_text, latency_us));
  ASSIGN_OR_RETURN(plan.host_link, LinkOf("--host-link", plan.host_link_text, latency_us));
  return absl::OkStatus();
}

absl::Status ResolveTraining(const PlanOptions& o, PlanInputs& plan) {
  plan.tokens = o.tokens.value_or(0);
  plan.days = o.days.value_or(kDays);
  plan.micro_batch = o.micro_batch.value_or(1);
  const double least = static_cast<double>(plan.context) * plan.data_parallel();
  plan.batch_tokens = o.batch_tokens.value_or(least * plan.micro_batch);
  if (plan.batch_tokens < least) {
    return Refuse(
        absl::StrFormat("--batch-tokens %.15g: at least %.15g, a sequence of %u tokens for each of "
                        "%u data-parallel "
                        "workers; or fewer --gpus",
                        plan.batch_tokens, least, plan.context, plan.data_parallel()));
  }
  const std::string recompute = o.recompute.value_or("none");
  if (recompute == "full") {
    plan.recomputation = Recomputation::kFull;
  } else if (recompute == "selective") {
    plan.recomputation = Recomputation::kSelective;
  } else if (recompute != "none") {
    return Refuse(absl::StrCat("--recompute ", recompute, ": none, selective or full"));
  }
  if (o.activations_gb) plan.activation_bytes = *o.activations_gb * 1e9;
  plan.buffer_bytes = o.buffers_gb.value_or(0) * 1e9;
  return absl::OkStatus();
}

template <typename T>
void Fill(std::optional<T>& value, const std::optional<T>& below) {
  if (!value) value = below;
}

}  // namespace

PlanOptions Overlay(const PlanOptions& above, const PlanOptions& below) {
  PlanOptions all = above;
  Fill(all.parameters, below.parameters);
  Fill(all.layers, below.layers);
  Fill(all.width, below.width);
  Fill(all.heads, below.heads);
  Fill(all.context, below.context);
  Fill(all.vocabulary, below.vocabulary);
  Fill(all.precision, below.precision);
  Fill(all.gpus, below.gpus);
  Fill(all.tensor, below.tensor);
  Fill(all.pipeline, below.pipeline);
  Fill(all.servers, below.servers);
  Fill(all.memory_gb, below.memory_gb);
  Fill(all.tflops, below.tflops);
  Fill(all.utilization, below.utilization);
  Fill(all.latency_us, below.latency_us);
  Fill(all.link, below.link);
  Fill(all.host_link, below.host_link);
  Fill(all.tokens, below.tokens);
  Fill(all.days, below.days);
  Fill(all.batch_tokens, below.batch_tokens);
  Fill(all.micro_batch, below.micro_batch);
  Fill(all.recompute, below.recompute);
  Fill(all.activations_gb, below.activations_gb);
  Fill(all.buffers_gb, below.buffers_gb);
  return all;
}

uint64_t PlanInputs::micro_batches() const {
  return static_cast<uint64_t>(std::ceil(sequences() / data_parallel() / micro_batch));
}

absl::StatusOr<PlanInputs> ResolvePlan(const PlanOptions& options) {
  PlanInputs plan;
  RETURN_IF_ERROR(ResolveModel(options, plan));
  RETURN_IF_ERROR(CheckClusterNumbers(options));
  RETURN_IF_ERROR(ResolveParallelism(options, plan));
  RETURN_IF_ERROR(ResolveHardware(options, plan));
  RETURN_IF_ERROR(ResolveTraining(options, plan));
  return plan;
}

}  // namespace tug
