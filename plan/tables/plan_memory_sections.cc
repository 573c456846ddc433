// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plan/pipeline_parallel.h"
#include "plan/strategy.h"
#include "plan/tables/fitting_plan.h"
#include "plan/tables/plan_sections.h"

namespace tug {
namespace {

// Shows the exact bytes and powers of 1,024 next to a figure of the lectures.
void AddLectures(const LectureFigures& lectures, PlanSection& section) {
  const auto has_figure = [&](const PlanRow& row) {
    return lectures.contains(row[0].get<std::string>());
  };
  if (std::none_of(section.rows.begin(), section.rows.end(), has_figure)) return;
  const auto bytes =
      std::find_if(section.columns.begin(), section.columns.end(),
                   [](const PlanColumn& column) { return column.form == PlanForm::kBytes; });
  const auto exactly =
      section.columns.insert(bytes + 1, PlanColumn{"exactly", "", PlanForm::kExactBytes});
  section.columns.insert(exactly + 1, PlanColumn{"binary", "", PlanForm::kBinaryBytes});
  section.columns.push_back({"lectures", "lectures"});
  for (PlanRow& row : section.rows) {
    row.push_back(has_figure(row) ? nlohmann::ordered_json(lectures.at(row[0].get<std::string>()))
                                  : nullptr);
  }
}

// "2 Psi + 14 Psi / N".
std::string FormulaOf(const WorkerShare& share) {
  if (share.divided == 0) return absl::StrFormat("%g Psi", share.whole);
  if (share.whole == 0) return absl::StrFormat("%g Psi / N", share.divided);
  return absl::StrFormat("%g Psi + %g Psi / N", share.whole, share.divided);
}

std::string ParametersText(const PlanInputs& plan) {
  const std::string all = absl::StrCat("Psi = ", CountText(plan.parameters));
  if (plan.tensor * plan.pipeline == 1) return all;
  return absl::StrFormat("Psi = %s, a GPU's part (tensor %u x pipeline %u)",
                         CountText(plan.local_parameters()), plan.tensor, plan.pipeline);
}

}  // namespace

std::string FitsHeading(const PlanInputs& plan) {
  return plan.memory_gb > 0 ? absl::StrCat("fits in ", DecimalBytes(plan.memory_gb * 1e9)) : "";
}

std::optional<double> GpuActivationBytes(const PlanInputs& plan) {
  if (plan.activations_gb) return *plan.activations_gb * 1e9;
  if (!plan.shape) return std::nullopt;
  const auto held = static_cast<double>(MicroBatchesHeld(plan.pipeline, plan.micro_batches()));
  return ActivationBytes(*plan.shape, plan.micro_batch, plan.tensor, plan.sequence_parallel,
                         plan.recomputation()) *
         held / plan.pipeline;
}

PlanSection StatesSection(const PlanInputs& plan, const LectureFigures& lectures) {
  PlanSection section{.key = "states", .title = "Memory in training, if one GPU held all (Adam)"};
  section.columns = {
      {"what", "what"}, {"bytes each", "bytes_each"}, {"rounded", "bytes", PlanForm::kBytes}};
  double total = 0;
  const auto add = [&](const char* what, const nlohmann::ordered_json& each, double bytes) {
    if (bytes == 0) return;
    section.rows.push_back({what, each, bytes});
    total += bytes;
  };
  const StateBytes& states = plan.states;
  add("parameters", states.parameters, states.parameters * plan.parameters);
  add("gradients", states.gradients, states.gradients * plan.parameters);
  add("master weights", states.master, states.master * plan.parameters);
  add("m", states.first_moment, states.first_moment * plan.parameters);
  add("v", states.second_moment, states.second_moment * plan.parameters);
  add("activations", nullptr, plan.activations_gb.value_or(0) * 1e9);
  add("buffers", nullptr, plan.buffers_gb * 1e9);
  const double all = total;
  add("total", nullptr, all);
  AddLectures(lectures, section);
  section.notes = {states.master > 0
                       ? "16-bit parameters and gradients; master weights, m and v FP32."
                       : "FP32: the parameters are the master weights."};
  return section;
}

PlanSection StagesSection(const PlanInputs& plan, const LectureFigures& lectures) {
  const uint32_t workers = plan.data_parallel();
  const std::optional<double> activations = GpuActivationBytes(plan);
  PlanSection section{
      .key = "stages",
      .title = absl::StrFormat("Memory of a %s by stage: %s, N = %u",
                               plan.is_job ? "worker" : "GPU", ParametersText(plan), workers)};
  section.columns = {
      {"stage", "stage"},
      {"formula", "formula"},
      {"rounded", "bytes", PlanForm::kBytes},
      {activations ? "with activations" : "", "with_activations_bytes", PlanForm::kBytes},
      {FitsHeading(plan), "fits"}};
  bool any_fits = false;
  for (const StrategyRow& strategy : Strategies()) {
    if (strategy.memory_name == nullptr) continue;
    // A job's own workers have a separate table.
    if (plan.is_job && strategy.strategy == Strategy::kParameterServer) continue;
    const WorkerShare share = strategy.share(plan.states);
    const double bytes = share.Bytes(plan.local_parameters(), workers);
    const double all = bytes + activations.value_or(0) + plan.buffers_gb * 1e9;
    nlohmann::ordered_json with;
    if (activations) with = all;
    const nlohmann::ordered_json fits = FitsInMemory(plan, bytes);
    any_fits = any_fits || fits != false;
    section.rows.push_back({strategy.memory_name, FormulaOf(share), bytes, with, fits});
  }
  AddLectures(lectures, section);
  if (!activations) {
    section.notes = {absl::StrCat("Without activations: ", plan.no_shape, ".")};
  } else if (plan.precision == "fp32" && !plan.activations_gb) {
    section.notes = {"Activations are counted in 16 bits."};
  }
  if (!any_fits && !plan.is_job && plan.shape) {
    const std::string nearest = NearestFittingPlan(plan);
    section.notes.push_back(
        nearest.empty() ? "No stage fits, with any --tensor, --pipeline and --recompute: add GPUs."
                        : absl::StrCat("No stage fits. Nearest plan that fits: ", nearest, "."));
  }
  return section;
}

PlanSection ParameterServerSection(const PlanInputs& plan) {
  PlanSection section{.key = "parameter_server",
                      .title = absl::StrCat("Memory of a parameter server, of S in total: Psi = ",
                                            CountText(plan.parameters))};
  section.columns = {{"S", "servers"}, {"server, 12 Psi / S", "server_bytes", PlanForm::kBytes}};
  for (const uint32_t servers : plan.servers) {
    section.rows.push_back({servers, ParameterServerBytes(plan.states, plan.parameters, servers)});
  }
  section.notes = {
      "FP32 weights, m, v. To include what else Tugboat's own servers hold, plan a job file."};
  return section;
}

PlanSection ActivationsSection(const PlanInputs& plan) {
  PlanSection section{.key = "activations"};
  if (!plan.shape) {
    section.title = absl::StrCat("Activations by recomputation: ", plan.no_shape);
    return section;
  }
  const TransformerShape& shape = *plan.shape;
  section.title =
      absl::StrFormat("Activations in 16 bits: L = %u, s = %u, h = %u, a = %u; b sequences",
                      shape.layers, shape.context, shape.width, shape.heads);
  section.columns = {
      {"recomputed", "recomputed"},
      {"formula", "formula"},
      {"b = 1", "sequence_bytes", PlanForm::kBytes},
      {absl::StrFormat("per step, b = %.8g", plan.sequences()), "batch_bytes", PlanForm::kBytes},
      {"per GPU", "gpu_bytes", PlanForm::kBytes},
      {"planned", "planned"}};
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"none", "L (34 s b h + 5 a s^2 b)"}, {"selective", "L 34 s b h"}, {"full", "L 2 s b h"}};
  for (const auto& [name, formula] : kKinds) {
    PlanInputs with = plan;
    with.recompute = name;
    with.activations_gb.reset();
    const auto whole = [&](double samples) {
      return ActivationBytes(shape, samples, /*tensor_parallel=*/1, /*sequence_parallel=*/false,
                             with.recomputation());
    };
    section.rows.push_back({name, formula, whole(1), whole(plan.sequences()),
                            *GpuActivationBytes(with), plan.recompute == name});
  }
  section.notes = {
      absl::StrFormat("Per GPU: micro-batches of %u, %u at once (1F1B), tensor %u%s, pipeline %u.",
                      plan.micro_batch, MicroBatchesHeld(plan.pipeline, plan.micro_batches()),
                      plan.tensor, plan.sequence_parallel ? " with sequence" : "", plan.pipeline),
      "Full recomputation computes 4/3 as much: another forward pass."};
  if (plan.is_job) {
    section.notes.emplace_back(
        "The job's own model keeps different activations: see the table of its processes.");
  }
  return section;
}

}  // namespace tug
