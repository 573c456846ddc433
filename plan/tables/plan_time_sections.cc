// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plan/deadline.h"
#include "plan/pipeline_parallel.h"
#include "plan/strategy.h"
#include "plan/tables/fitting_plan.h"
#include "plan/tables/plan_sections.h"
#include "plan/tensor_parallel.h"

namespace tug {
namespace {

constexpr double kDaySeconds = 24 * 3600;
constexpr char kNoTimes[] = "give --tflops and --link";

// Seconds of tensor parallelism's all-reduces in a step: in every turn of the pipeline, those of a
// stage's layers for one micro-batch.
double TensorSeconds(const PlanInputs& plan) {
  const auto turns = static_cast<double>(PipelineTurns(plan.pipeline, plan.micro_batches()));
  return turns / plan.pipeline *
         TensorParallelSeconds(*plan.shape, plan.micro_batch, plan.tensor, plan.recomputation(),
                               plan.tensor_link_cost());
}

double BetweenStagesSeconds(const PlanInputs& plan) {
  return PipelineSeconds(*plan.shape, plan.micro_batch, plan.pipeline, plan.micro_batches(),
                         plan.link_cost());
}

// Time of a step on the busiest worker without the exchange of gradients and weights.
struct StepBase {
  double compute = 0;  // of a GPU that never waits
  double bubble = 0;
  double tensor = 0;
  double pipeline = 0;

  double All() const { return compute + bubble + tensor + pipeline; }
};

StepBase StepBaseOf(const PlanInputs& plan) {
  const uint64_t m = plan.micro_batches();
  const double tokens = static_cast<double>(m * plan.micro_batch * plan.context);
  StepBase base;
  base.compute = TrainingSeconds(TrainingFlops(plan.parameters, tokens, plan.recomputation()),
                                 plan.achieved_flops(), plan.tensor * plan.pipeline);
  base.bubble = base.compute * BubbleFraction(plan.pipeline, m);
  if (!plan.shape) return base;
  base.tensor = TensorSeconds(plan);
  base.pipeline = BetweenStagesSeconds(plan);
  return base;
}

Exchange ExchangeOf(const PlanInputs& plan, uint32_t servers) {
  return {.gradient_bytes = plan.push_bytes * plan.local_parameters(),
          .weight_bytes = plan.pull_bytes * plan.local_parameters(),
          .workers = plan.data_parallel(),
          .parts = plan.tensor * plan.pipeline,
          .micro_batches = plan.micro_batches(),
          .servers = servers,
          .pushes = plan.pushes()};
}

int FlopsATokenAndParameter(const PlanInputs& plan) {
  return static_cast<int>(TrainingFlops(1, 1, plan.recomputation()));
}

// Time that tensor and pipeline parallelism add to computing.
std::string ModelParallelText(const PlanInputs& plan, const StepBase& base) {
  const std::string bubble = absl::StrCat("Pipeline bubble ", SecondsText(base.bubble));
  if (!plan.shape) return absl::StrCat(bubble, "; without a shape no messages are counted.");
  return absl::StrCat(bubble, ", tensor all-reduces ", SecondsText(base.tensor),
                      ", between stages ", SecondsText(base.pipeline), ".");
}

PlanRow StepRow(const PlanInputs& plan, const StrategyRow& strategy, uint32_t servers,
                const StepBase& base) {
  const Exchange exchange = ExchangeOf(plan, servers);
  const StepTraffic traffic = strategy.traffic(exchange);
  Exchange of_one = exchange;
  of_one.gradient_bytes = of_one.weight_bytes = 1;
  std::string name = strategy.name;
  nlohmann::ordered_json server_receives, server_sends;
  if (strategy.strategy == Strategy::kParameterServer) {
    absl::StrAppend(&name, ", S=", servers);
    server_receives = traffic.server_receives;
    server_sends = traffic.server_sends;
  }
  PlanRow row = {name,          strategy.formula(exchange), strategy.traffic(of_one).sends,
                 traffic.sends, traffic.receives,           server_receives,
                 server_sends};
  if (plan.has_times()) {
    const double seconds = strategy.seconds(exchange, plan.link_cost());
    for (const double cell : {seconds, base.All() + seconds, std::max(base.All(), seconds)}) {
      row.emplace_back(cell);
    }
  }
  return row;
}

}  // namespace

PlanSection StepSection(const PlanInputs& plan) {
  const StepBase base = plan.has_times() ? StepBaseOf(plan) : StepBase();
  PlanSection section{
      .key = "step",
      .title = absl::StrFormat("A step by strategy: N = %u, m = %u, Psi = %s per GPU, %s",
                               plan.data_parallel(), plan.micro_batches(),
                               CountText(plan.local_parameters()),
                               DecimalBytes(plan.push_bytes * plan.local_parameters())),
      .joins_equal_rows = true};
  const bool apart = plan.push_bytes != plan.pull_bytes || plan.pushes() > 1;
  section.columns = {
      {"strategy", "strategy"},
      {"a GPU sends", "formula"},
      {"x Psi", "times_psi", PlanForm::kRatio},
      {"bytes", "sent_bytes", PlanForm::kBytes},
      {apart ? "receives" : "", "received_bytes", PlanForm::kBytes},
      {apart ? "a server receives" : "a server", "server_received_bytes", PlanForm::kBytes},
      {apart ? "sends" : "", "server_sent_bytes", PlanForm::kBytes}};
  if (plan.has_times()) {
    section.columns.push_back({"exchange", "exchange_seconds", PlanForm::kSeconds});
    section.columns.push_back({"a step", "sequential_seconds", PlanForm::kSeconds});
    section.columns.push_back({"overlapped", "overlapped_seconds", PlanForm::kSeconds});
  }
  for (const StrategyRow& strategy : Strategies()) {
    if (strategy.strategy != Strategy::kParameterServer) {
      section.rows.push_back(StepRow(plan, strategy, /*servers=*/1, base));
      continue;
    }
    for (const uint32_t servers : plan.servers) {
      section.rows.push_back(StepRow(plan, strategy, servers, base));
    }
  }
  if (plan.has_times()) {
    section.notes = {
        absl::StrFormat("Computes: %d Psi tokens of the busiest worker / FLOPS achieved = %s.",
                        FlopsATokenAndParameter(plan), SecondsText(base.compute))};
    if (plan.tensor * plan.pipeline > 1) section.notes.push_back(ModelParallelText(plan, base));
    section.notes.emplace_back(
        "A step: computes, then exchanges; overlapped: both at once, the best possible.");
  } else {
    section.notes = {absl::StrCat("For times ", kNoTimes, ".")};
  }
  section.notes.emplace_back(
      "Exchange: alpha-beta model, without the time of sums; servers on their own hosts.");
  section.notes.insert(section.notes.end(), plan.exchange_notes.begin(), plan.exchange_notes.end());
  return section;
}

PlanSection DeadlineSection(const PlanInputs& plan, const LectureFigures& lectures) {
  PlanSection section{.key = "deadline"};
  if (plan.tokens == 0 || !plan.has_times()) {
    section.title = absl::StrCat("GPUs for a deadline: ",
                                 plan.has_times() ? "give --tokens (and --days)" : kNoTimes);
    return section;
  }
  const double flops = TrainingFlops(plan.parameters, plan.tokens, plan.recomputation());
  const double gpus = GpusForDeadline(flops, plan.achieved_flops(), plan.days * kDaySeconds);
  const double group = plan.tensor * plan.pipeline;
  section.title =
      absl::StrFormat("GPUs for %s tokens in %g days", CountText(plan.tokens), plan.days);
  section.columns = {{"what", "what"}, {"unrounded", "unrounded"}, {"rounded", "rounded"}};
  section.rows.push_back({"GPUs for the deadline", gpus, std::ceil(gpus)});
  if (group > 1) {
    section.rows.push_back({absl::StrFormat("  as a multiple of t p = %.0f", group), nullptr,
                            std::ceil(gpus / group) * group});
  }
  const auto add_days = [&](const std::string& what, double days) {
    section.rows.push_back({what, days, std::round(days * 10) / 10});
  };
  add_days(absl::StrFormat("days on %s GPUs", CountText(plan.gpus)),
           TrainingSeconds(flops, plan.achieved_flops(), plan.gpus) / kDaySeconds);
  const StrategyRow& ring = RowOf(Strategy::kRing);
  const double step =
      StepBaseOf(plan).All() + ring.seconds(ExchangeOf(plan, /*servers=*/1), plan.link_cost());
  add_days(absl::StrFormat("days by the step above (%s)", ring.name),
           plan.tokens / plan.batch_tokens * step / kDaySeconds);
  const auto figure = lectures.find("GPUs for the deadline");
  if (figure != lectures.end()) {
    section.columns.push_back({"lectures", "lectures"});
    for (PlanRow& row : section.rows) row.emplace_back(nullptr);
    section.rows[0].back() = figure->second;
  }
  section.notes = {
      absl::StrFormat("%d x %s parameters x %s tokens = %.4g FLOPs / (%.4g TFLOPS x %g days).",
                      FlopsATokenAndParameter(plan), CountText(plan.parameters),
                      CountText(plan.tokens), flops, plan.achieved_flops() * 1e-12, plan.days),
      "--utilization is end to end and includes all waiting; the step above adds waiting again."};
  return section;
}

PlanSection TensorSection(const PlanInputs& plan) {
  PlanSection section{.key = "tensor_parallel"};
  if (!plan.shape) {
    section.title = absl::StrCat("Tensor parallelism: ", plan.no_shape);
    return section;
  }
  const TransformerShape& shape = *plan.shape;
  section.title =
      absl::StrFormat("Tensor parallelism, t GPUs per layer%s, pipeline %u; per GPU",
                      plan.sequence_parallel ? " with sequence parallelism" : "", plan.pipeline);
  section.columns = {{"t", "tensor"},
                     {"N", "workers"},
                     {"m", "micro_batches"},
                     {"states", "state_bytes", PlanForm::kBytes},
                     {"activations", "activation_bytes", PlanForm::kBytes},
                     {FitsHeading(plan), "fits"},
                     {"all-reduces", "all_reduces_a_layer"},
                     {"of", "all_reduce_bytes", PlanForm::kBytes},
                     {"sends", "sent_bytes", PlanForm::kBytes},
                     {plan.has_times() ? "in a step" : "", "seconds", PlanForm::kSeconds},
                     {"planned", "planned"}};
  for (const uint32_t t : Degrees(plan.tensor, shape.heads, plan.gpus, plan.pipeline)) {
    const PlanInputs with = WithDegrees(plan, t, plan.pipeline);
    nlohmann::ordered_json seconds;
    if (plan.has_times()) seconds = TensorSeconds(with);
    section.rows.push_back(
        {t, with.data_parallel(), with.micro_batches(), GpuStateBytes(with),
         *GpuActivationBytes(with), FitsInMemory(with, GpuStateBytes(with)),
         t == 1 ? 0 : TensorAllReducesPerLayer(with.recomputation()),
         LayerOutputBytes(shape, plan.micro_batch),
         TensorParallelBytes(shape, plan.micro_batch, t, with.recomputation()) / plan.pipeline,
         seconds, t == plan.tensor});
  }
  section.notes = {
      "All-reduces per layer, of 2 s b h bytes: 2 forward, 2 backward, 2 more if fully recomputed.",
      absl::StrFormat("Sends: per micro-batch. Rings on --host-link up to %u GPUs, then on --link.",
                      plan.host_gpus)};
  return section;
}

PlanSection PipelineSection(const PlanInputs& plan) {
  PlanSection section{.key = "pipeline_parallel"};
  if (!plan.shape) {
    section.title = absl::StrCat("Pipeline parallelism: ", plan.no_shape);
    return section;
  }
  const TransformerShape& shape = *plan.shape;
  section.title = absl::StrFormat(
      "Pipeline parallelism, p stages, m micro-batches per step, tensor %u; per GPU", plan.tensor);
  section.columns = {{"p", "pipeline"},
                     {"N", "workers"},
                     {"layers", "layers"},
                     {"states", "state_bytes", PlanForm::kBytes},
                     {"activations", "activation_bytes", PlanForm::kBytes},
                     {FitsHeading(plan), "fits"},
                     {"m", "micro_batches"},
                     {"held", "held"},
                     {"bubble", "bubble", PlanForm::kPercent},
                     {"idle", "idle_share", PlanForm::kPercent},
                     {"sends", "boundary_bytes", PlanForm::kBytes},
                     {plan.has_times() ? "in a step" : "", "seconds", PlanForm::kSeconds},
                     {"planned", "planned"}};
  for (const uint32_t p : Degrees(plan.pipeline, shape.layers, plan.gpus, plan.tensor)) {
    const PlanInputs with = WithDegrees(plan, plan.tensor, p);
    const uint64_t m = with.micro_batches();
    nlohmann::ordered_json seconds;
    if (plan.has_times()) seconds = BetweenStagesSeconds(with);
    section.rows.push_back({p, with.data_parallel(), shape.layers / p, GpuStateBytes(with),
                            *GpuActivationBytes(with), FitsInMemory(with, GpuStateBytes(with)), m,
                            MicroBatchesHeld(p, m), BubbleFraction(p, m), IdleShare(p, m),
                            p == 1 ? 0 : LayerOutputBytes(shape, plan.micro_batch), seconds,
                            p == plan.pipeline});
  }
  section.notes = {
      "Bubble: (p - 1) / m of computing; idle: of the step. Held: micro-batches, 1F1B (GPipe: m).",
      "Sends: 2 s b h bytes per micro-batch forward, as many backward; not hidden."};
  return section;
}

}  // namespace tug
