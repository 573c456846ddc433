#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/plan_sections.h"
#include "plan/deadline.h"
#include "plan/pipeline_parallel.h"
#include "plan/step_time.h"
#include "plan/tensor_parallel.h"
#include "plan/traffic.h"

namespace tug {
namespace {

constexpr double kDaySeconds = 24 * 3600;
constexpr uint32_t kWidestTable = 16;  // ways of tensor and pipeline parallelism that are shown

PlanCell SecondsCell(double seconds) { return {SecondsText(seconds), seconds}; }
PlanCell BytesCell(double bytes) { return {DecimalBytes(bytes), bytes}; }

// What a step takes beside the exchange of gradients and weights.
struct StepBase {
  double compute = 0;  // of a GPU that never waits
  double bubble = 0;
  double tensor = 0;
  double pipeline = 0;

  double All() const { return compute + bubble + tensor + pipeline; }
};

StepBase StepBaseOf(const PlanInputs& plan) {
  StepBase base;
  base.compute =
      TrainingSeconds(TrainingFlops(plan.parameters, plan.batch_tokens, plan.recomputation),
                      plan.achieved_flops(), plan.gpus);
  const uint64_t m = plan.micro_batches();
  base.bubble = base.compute * BubbleFraction(plan.pipeline, m);
  if (!plan.shape) return base;
  base.tensor = static_cast<double>(m) / plan.pipeline *
                TensorParallelSeconds(*plan.shape, plan.micro_batch, plan.tensor, plan.host_link);
  base.pipeline = PipelineSeconds(*plan.shape, plan.micro_batch, plan.pipeline, m, plan.link);
  return base;
}

int FlopsATokenAndParameter(const PlanInputs& plan) {
  return static_cast<int>(TrainingFlops(1, 1, plan.recomputation));
}

// What tensor and pipeline parallelism add to computing.
std::string ModelParallelText(const PlanInputs& plan, const StepBase& base) {
  if (plan.tensor * plan.pipeline == 1) return "";
  const std::string bubble = absl::StrCat("; pipeline bubble ", SecondsText(base.bubble));
  if (!plan.shape) {
    return absl::StrCat(bubble, "; without a shape nothing of their messages is counted");
  }
  return absl::StrCat(bubble, ", tensor all-reduces ", SecondsText(base.tensor),
                      ", between stages ", SecondsText(base.pipeline));
}

void AddExchange(const PlanInputs& plan, const StrategyName& strategy, uint32_t servers,
                 const StepBase& base, PlanSection& section) {
  const double model_bytes = plan.exchanged_bytes() * plan.local_parameters();
  const uint32_t workers = plan.data_parallel();
  const StepTraffic traffic = TrafficOf(strategy.strategy, model_bytes, workers, servers);
  const double seconds =
      CommunicationSeconds(strategy.strategy, plan.link, model_bytes, workers, servers);
  const bool has_servers = strategy.strategy == Strategy::kParameterServer;
  const double models = traffic.worker_bytes / model_bytes;
  const double behind = base.All() + seconds, hidden = std::max(base.All(), seconds);
  section.rows.push_back(
      {has_servers ? absl::StrFormat("%s, S = %u", strategy.name, servers) : strategy.name,
       strategy.sends, PlanCell(absl::StrFormat("%.4g", models), models),
       BytesCell(traffic.worker_bytes),
       has_servers ? BytesCell(traffic.server_bytes) : PlanCell(""), SecondsCell(seconds),
       SecondsCell(behind), SecondsCell(hidden)});
}

// Powers of two up to kWidestTable and `chosen` that divide what is dealt out, and the GPUs.
std::vector<uint32_t> Ways(uint32_t chosen, uint64_t dealt, uint32_t gpus, uint32_t others) {
  std::vector<uint32_t> ways;
  for (uint32_t way = 1; way <= kWidestTable; way *= 2) ways.push_back(way);
  ways.push_back(chosen);
  std::sort(ways.begin(), ways.end());
  ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
  std::erase_if(
      ways, [&](uint32_t way) { return dealt % way != 0 || gpus % (uint64_t{way} * others) != 0; });
  return ways;
}

}  // namespace

PlanSection InputsSection(const PlanInputs& plan) {
  PlanSection section{.key = "inputs", .title = "Planned for"};
  section.headings = {"option", "value", "what"};
  section.keys = {"option", "value", ""};
  const auto add = [&](const char* option, PlanCell value, const std::string& what) {
    section.rows.push_back({option, std::move(value), what});
  };
  add("--gpus", PlanCell(CountText(plan.gpus), plan.gpus),
      absl::StrFormat("data parallel N = %u x tensor %u x pipeline %u", plan.data_parallel(),
                      plan.tensor, plan.pipeline));
  add("--memory-gb",
      PlanCell(absl::StrFormat("%g", plan.gpu_memory_bytes * 1e-9), plan.gpu_memory_bytes * 1e-9),
      "of a GPU");
  add("--tflops", PlanCell(absl::StrFormat("%g", plan.peak_flops * 1e-12), plan.peak_flops * 1e-12),
      "peak of a GPU");
  add("--utilization", PlanCell(absl::StrFormat("%.4g", plan.utilization), plan.utilization),
      absl::StrFormat("%.4g TFLOPS achieved", plan.achieved_flops() * 1e-12));
  add("--link", plan.link_text, "of a GPU to other hosts, each way: data and pipeline parallelism");
  add("--host-link", plan.host_link_text, "of a GPU within its host: tensor parallelism");
  const double latency_us = plan.link.alpha * 1e6;
  add("--latency-us", PlanCell(absl::StrFormat("%g", latency_us), latency_us), "of a message");
  add("--batch-tokens", PlanCell(CountText(plan.batch_tokens), plan.batch_tokens),
      absl::StrFormat("a step: %.8g sequences of %u tokens", plan.sequences(), plan.context));
  add("--micro-batch", PlanCell(CountText(plan.micro_batch), plan.micro_batch),
      absl::StrFormat("sequences at once, %u times a step", plan.micro_batches()));
  return section;
}

PlanSection StepSection(const PlanInputs& plan) {
  const StepBase base = StepBaseOf(plan);
  const double psi_bytes = plan.exchanged_bytes() * plan.local_parameters();
  PlanSection section{
      .key = "step",
      .title = absl::StrFormat("A step by strategy: N = %u, Psi = %s in %g bytes each, %s",
                               plan.data_parallel(), CountText(plan.local_parameters()),
                               plan.exchanged_bytes(), DecimalBytes(psi_bytes))};
  section.headings = {
      "strategy", "a worker sends, and receives", "Psi",         "bytes", "a server",
      "exchange", "computes, then exchanges",     "both at once"};
  section.keys = {"strategy",           "formula",           "models",
                  "worker_bytes",       "server_bytes",      "exchange_seconds",
                  "sequential_seconds", "overlapped_seconds"};
  for (const StrategyName& strategy : kStrategies) {
    if (strategy.strategy != Strategy::kParameterServer) {
      AddExchange(plan, strategy, /*servers=*/1, base, section);
      continue;
    }
    for (const uint32_t servers : plan.servers) AddExchange(plan, strategy, servers, base, section);
  }
  section.notes = {absl::StrFormat("Computes: %d Psi tokens / (GPUs x achieved) = %s%s.",
                                   FlopsATokenAndParameter(plan), SecondsText(base.compute),
                                   ModelParallelText(plan, base))};
  section.notes.emplace_back(
      "Exchange: alpha-beta model, nothing for sums; servers on hosts of their own; once a step.");
  return section;
}

PlanSection DeadlineSection(const PlanInputs& plan, const LectureFigures& lectures) {
  PlanSection section{.key = "deadline"};
  if (plan.tokens == 0) {
    section.title = "GPUs for a deadline: give --tokens (and --days)";
    return section;
  }
  const double flops = TrainingFlops(plan.parameters, plan.tokens, plan.recomputation);
  const double gpus = GpusForDeadline(flops, plan.achieved_flops(), plan.days * kDaySeconds);
  const double days = TrainingSeconds(flops, plan.achieved_flops(), plan.gpus) / kDaySeconds;
  section.title =
      absl::StrFormat("GPUs for %s tokens in %g days", CountText(plan.tokens), plan.days);
  section.headings = {"what", "exactly", "rounded"};
  section.keys = {"what", "exactly", "rounded"};
  section.rows.push_back({"GPUs for the deadline", PlanCell(absl::StrFormat("%.9g", gpus), gpus),
                          PlanCell(CountText(std::ceil(gpus)), std::ceil(gpus))});
  section.rows.push_back({absl::StrFormat("days on %s GPUs", CountText(plan.gpus)),
                          PlanCell(absl::StrFormat("%.9g", days), days),
                          PlanCell(absl::StrFormat("%.1f", days), days)});
  const auto figure = lectures.find("GPUs for the deadline");
  if (figure != lectures.end()) {
    section.headings.emplace_back("lectures");
    section.keys.emplace_back("lectures");
    section.rows[0].emplace_back(figure->second);
    section.rows[1].emplace_back("");
  }
  section.notes = {absl::StrFormat(
      "%d x %s parameters x %s tokens = %.4g FLOPs / (%.4g TFLOPS achieved x %g days).",
      FlopsATokenAndParameter(plan), CountText(plan.parameters), CountText(plan.tokens), flops,
      plan.achieved_flops() * 1e-12, plan.days)};
  return section;
}

PlanSection TensorSection(const PlanInputs& plan) {
  PlanSection section{.key = "tensor_parallel"};
  if (!plan.shape) {
    section.title = "Tensor parallelism: give --layers, --width and --heads";
    return section;
  }
  const TransformerShape& shape = *plan.shape;
  section.title = absl::StrFormat(
      "Tensor parallelism, t GPUs, for a micro-batch of %u in all layers", plan.micro_batch);
  section.headings = {"t",        "states, 16 Psi / t", "activations", "all-reduces a layer",
                      "of bytes", "a GPU sends",        "they take"};
  section.keys = {"tensor",           "state_bytes", "activation_bytes", "all_reduces_a_layer",
                  "all_reduce_bytes", "sent_bytes",  "seconds"};
  for (const uint32_t t : Ways(plan.tensor, shape.heads, plan.gpus, plan.pipeline)) {
    const int all_reduces = t == 1 ? 0 : kTensorAllReducesPerLayer;
    section.rows.push_back(
        {PlanCell(CountText(t), t), BytesCell(plan.states.All() * plan.parameters / t),
         BytesCell(ActivationBytes(shape, plan.micro_batch, t, plan.recomputation)),
         PlanCell(CountText(all_reduces), all_reduces),
         BytesCell(LayerOutputBytes(shape, plan.micro_batch)),
         BytesCell(TensorParallelBytes(shape, plan.micro_batch, t)),
         SecondsCell(TensorParallelSeconds(shape, plan.micro_batch, t, plan.host_link))});
  }
  section.notes = {
      "All-reduces of 2 s b h bytes: 2 forward, 2 backward (Megatron-LM), rings on --host-link."};
  return section;
}

PlanSection PipelineSection(const PlanInputs& plan) {
  PlanSection section{.key = "pipeline_parallel"};
  if (!plan.shape) {
    section.title = "Pipeline parallelism: give --layers, --width and --heads";
    return section;
  }
  const TransformerShape& shape = *plan.shape;
  section.title = "Pipeline parallelism, p stages, m micro-batches a step";
  section.headings = {"p",           "layers a stage", "states, 16 Psi / p",
                      "m",           "held at once",   "bubble, (p - 1) / m",
                      "of the step", "between stages", "takes a step"};
  section.keys = {"pipeline", "layers",     "state_bytes",    "micro_batches", "held",
                  "bubble",   "idle_share", "boundary_bytes", "seconds"};
  for (const uint32_t p : Ways(plan.pipeline, shape.layers, plan.gpus, plan.tensor)) {
    PlanInputs with = plan;
    with.pipeline = p;
    const uint64_t m = with.micro_batches();
    const auto count = [](uint64_t value) {
      const auto number = static_cast<double>(value);
      return PlanCell(CountText(number), number);
    };
    const auto percent = [](double part) {
      return PlanCell(absl::StrFormat("%.1f%%", part * 100), part);
    };
    section.rows.push_back(
        {count(p), count(shape.layers / p), BytesCell(plan.states.All() * plan.parameters / p),
         count(m), count(MicroBatchesHeld(p, m)), percent(BubbleFraction(p, m)),
         percent(IdleShare(p, m)),
         BytesCell(p == 1 ? 0 : LayerOutputBytes(shape, plan.micro_batch)),
         SecondsCell(PipelineSeconds(shape, plan.micro_batch, p, m, plan.link))});
  }
  section.notes = {
      "Between stages: 2 s b h bytes a micro-batch forward, as many backward; held: 1F1B (GPipe "
      "holds m)."};
  return section;
}

}  // namespace tug
