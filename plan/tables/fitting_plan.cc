// SPDX-License-Identifier: Apache-2.0
#include "plan/tables/fitting_plan.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "plan/strategy.h"
#include "plan/tables/plan_sections.h"

namespace tug {
namespace {

constexpr uint32_t kMaxDegree = 16;
constexpr const char* kRecomputations[] = {"none", "selective", "full"};

// Bytes of a GPU besides its states.
double OtherBytes(const PlanInputs& plan) {
  return GpuActivationBytes(plan).value_or(0) + plan.buffers_gb * 1e9;
}

std::string OptionsText(const PlanInputs& plan) {
  std::string text;
  if (plan.tensor > 1) absl::StrAppend(&text, " --tensor ", plan.tensor);
  if (plan.pipeline > 1) absl::StrAppend(&text, " --pipeline ", plan.pipeline);
  if (plan.recompute != "none") absl::StrAppend(&text, " --recompute ", plan.recompute);
  return text.empty() ? text : text.substr(1);
}

// The lowest stage with which `plan` fits; empty if none.
std::string FittingStage(const PlanInputs& plan) {
  for (const StrategyRow& strategy : Strategies()) {
    if (strategy.memory_name == nullptr) continue;
    const double bytes =
        strategy.share(plan.states).Bytes(plan.local_parameters(), plan.data_parallel());
    if (FitsInMemory(plan, bytes) != true) continue;
    const std::string options = OptionsText(plan);
    return absl::StrCat(options, options.empty() ? "" : ", ", strategy.memory_name, ": ",
                        DecimalBytes(bytes + OtherBytes(plan)), " per GPU");
  }
  return "";
}

}  // namespace

std::vector<uint32_t> Degrees(uint32_t chosen, uint64_t parts, uint32_t gpus, uint32_t others) {
  std::vector<uint32_t> degrees;
  for (uint32_t degree = 1; degree <= kMaxDegree; degree *= 2) degrees.push_back(degree);
  degrees.push_back(chosen);
  std::sort(degrees.begin(), degrees.end());
  degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
  std::erase_if(degrees, [&](uint32_t degree) {
    return parts % degree != 0 || gpus % (uint64_t{degree} * others) != 0;
  });
  return degrees;
}

PlanInputs WithDegrees(PlanInputs plan, uint32_t tensor, uint32_t pipeline) {
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.activations_gb.reset();
  if (!plan.is_job) plan.virtual_workers = plan.data_parallel();
  return plan;
}

double GpuStateBytes(const PlanInputs& plan) { return plan.states.All() * plan.local_parameters(); }

nlohmann::ordered_json FitsInMemory(const PlanInputs& plan, double bytes) {
  if (plan.memory_gb <= 0) return nullptr;
  return bytes + OtherBytes(plan) <= plan.memory_gb * 1e9;
}

std::string NearestFittingPlan(const PlanInputs& plan) {
  if (!plan.shape) return "";
  std::vector<PlanInputs> plans;
  for (const uint32_t t : Degrees(plan.tensor, plan.shape->heads, plan.gpus, 1)) {
    for (const uint32_t p : Degrees(plan.pipeline, plan.shape->layers, plan.gpus, t)) {
      plans.push_back(WithDegrees(plan, t, p));
    }
  }
  std::ranges::stable_sort(plans, {}, [](const PlanInputs& one) {
    return std::tuple(one.tensor * one.pipeline, one.pipeline);
  });
  for (PlanInputs& one : plans) {
    for (const char* recompute : kRecomputations) {
      one.recompute = recompute;
      if (std::string found = FittingStage(one); !found.empty()) return found;
    }
  }
  return "";
}

}  // namespace tug
