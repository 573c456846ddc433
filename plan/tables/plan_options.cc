// SPDX-License-Identifier: Apache-2.0
#include "plan/tables/plan_options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "plan/link_rate.h"

namespace tug {
namespace {

// Allowed difference between a shape's parameters and the given number, for other forms of MLP,
// attention and embedding.
constexpr double kShapeTolerance = 0.25;

absl::Status Refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status ResolveShape(PlanInputs& plan) {
  const int said = (plan.layers > 0) + (plan.width > 0) + (plan.heads > 0);
  if (said == 0) return absl::OkStatus();
  if (said < 3) return Refuse("a model's shape is --layers, --width and --heads: give all three");
  if (plan.width % plan.heads != 0) {
    return Refuse(
        absl::StrCat("--heads ", plan.heads, " must be a divisor of --width ", plan.width));
  }
  plan.shape = TransformerShape{.layers = plan.layers,
                                .width = plan.width,
                                .heads = plan.heads,
                                .context = plan.context,
                                .vocabulary = plan.vocabulary};
  return absl::OkStatus();
}

absl::Status ResolveModel(PlanInputs& plan) {
  RETURN_IF_ERROR(ResolveShape(plan));
  if (plan.parameters == 0 && !plan.shape) {
    return Refuse(
        "no model given: pass --preset gpt3, a job file, --parameters N, or --layers, --width and "
        "--heads");
  }
  if (plan.shape) {
    const auto counted = static_cast<double>(DecoderParameters(*plan.shape));
    if (plan.parameters == 0) plan.parameters = counted;
    if (!plan.is_job && std::abs(plan.parameters / counted - 1) > kShapeTolerance) {
      return Refuse(
          absl::StrFormat("--parameters %.4g differs too much from the %.4g of --layers %u --width "
                          "%u --vocabulary %u: correct one of them",
                          plan.parameters, counted, plan.layers, plan.width, plan.vocabulary));
    }
  }
  if (plan.is_job) return absl::OkStatus();
  plan.states = plan.precision == "mixed" ? kMixedPrecision : kFullPrecision;
  plan.push_bytes = plan.states.gradients;
  plan.pull_bytes = plan.states.parameters;
  return absl::OkStatus();
}

absl::Status ResolveParallelism(PlanInputs& plan) {
  if (plan.shape && plan.shape->heads % plan.tensor != 0) {
    return Refuse(absl::StrCat("--tensor ", plan.tensor, " must be a divisor of the ",
                               plan.shape->heads, " heads that it distributes"));
  }
  if (plan.shape && plan.shape->layers % plan.pipeline != 0) {
    return Refuse(absl::StrCat("--pipeline ", plan.pipeline, " must be a divisor of the ",
                               plan.shape->layers, " layers that it distributes"));
  }
  const uint64_t group = uint64_t{plan.tensor} * plan.pipeline;
  if (plan.gpus % group != 0) {
    return Refuse(absl::StrCat("--gpus ", plan.gpus,
                               " must be a multiple of --tensor x --pipeline = ", group,
                               ", the GPUs that hold one copy of the model"));
  }
  if (plan.servers.empty()) {
    plan.servers = {1, std::max(1u, plan.data_parallel() / 8), plan.data_parallel()};
  }
  std::sort(plan.servers.begin(), plan.servers.end());
  plan.servers.erase(std::unique(plan.servers.begin(), plan.servers.end()), plan.servers.end());
  if (!plan.is_job) plan.virtual_workers = plan.data_parallel();
  return absl::OkStatus();
}

absl::Status ResolveBatch(PlanInputs& plan) {
  const double each = static_cast<double>(plan.context) * plan.data_parallel();
  if (plan.batch_tokens == 0) plan.batch_tokens = each * plan.micro_batch;
  if (plan.is_job) return absl::OkStatus();
  if (plan.batch_tokens < each) {
    return Refuse(
        absl::StrFormat("--batch-tokens %.15g must be at least %.15g, a sequence of %u tokens for "
                        "each of %u data-parallel workers: raise it or lower --gpus",
                        plan.batch_tokens, each, plan.context, plan.data_parallel()));
  }
  const double share = std::ceil(plan.sequences() / plan.data_parallel());
  if (plan.micro_batch > share) {
    return Refuse(absl::StrFormat(
        "--micro-batch %u must be at most %.0f, a worker's share of --batch-tokens %.15g",
        plan.micro_batch, share, plan.batch_tokens));
  }
  return absl::OkStatus();
}

LinkCost CostOf(const std::string& rate, double latency_us) {
  return {.alpha = latency_us * 1e-6, .beta = 8 / ParseLinkRate(rate).value(), .gamma = 0};
}

}  // namespace

Recomputation PlanInputs::recomputation() const {
  if (recompute == "none") return Recomputation::kNone;
  return recompute == "full" ? Recomputation::kFull : Recomputation::kSelective;
}

uint32_t PlanInputs::pushes() const {
  return (virtual_workers + data_parallel() - 1) / data_parallel();
}

uint64_t PlanInputs::micro_batches() const {
  return pushes() * static_cast<uint64_t>(std::ceil(sequences() / virtual_workers / micro_batch));
}

LinkCost PlanInputs::link_cost() const { return CostOf(link, latency_us); }

LinkCost PlanInputs::tensor_link_cost() const {
  return CostOf(host_link.empty() || tensor > host_gpus ? link : host_link, latency_us);
}

absl::Status ResolvePlan(PlanInputs& inputs) {
  RETURN_IF_ERROR(ResolveModel(inputs));
  RETURN_IF_ERROR(ResolveParallelism(inputs));
  return ResolveBatch(inputs);
}

}  // namespace tug
