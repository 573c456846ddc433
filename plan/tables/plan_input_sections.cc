// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plan/tables/plan_sections.h"

namespace tug {

PlanSection InputsSection(const PlanInputs& plan, const std::string& name) {
  PlanSection section{.key = "inputs", .title = absl::StrCat("Plan of ", name)};
  section.columns = {{"option", "option"}, {"value", "value"}, {"what", "what"}};
  const auto add = [&](const char* option, const nlohmann::ordered_json& value,
                       const std::string& what) {
    section.rows.push_back({option, value, what});
  };
  // Adds an input that may not be given.
  const auto add_said = [&](const char* option, bool said, const nlohmann::ordered_json& value,
                            const std::string& what) {
    add(option, said ? value : nullptr, said ? what : "not given");
  };
  add("parameters", plan.parameters, "Psi");
  if (plan.shape) {
    add("layers", plan.layers, "L");
    add("width", plan.width, "h");
    add("heads", plan.heads, "a");
    add("vocabulary", plan.vocabulary, "V");
  }
  add("context", plan.context, "s, tokens per sequence");
  add("precision", plan.precision,
      absl::StrFormat("gradients exchanged in %g bytes, weights in %g", plan.push_bytes,
                      plan.pull_bytes));
  if (plan.activations_gb) add("activations-gb", *plan.activations_gb, "per GPU");
  add("buffers-gb", plan.buffers_gb, "per GPU");
  add("gpus", plan.gpus,
      absl::StrFormat("data parallel N = %u x tensor %u x pipeline %u", plan.data_parallel(),
                      plan.tensor, plan.pipeline));
  add("host-gpus", plan.host_gpus, "per host");
  add("tensor", plan.tensor, "t");
  add("pipeline", plan.pipeline, "p");
  add("sequence-parallel", plan.sequence_parallel, "with tensor parallelism");
  add("servers", absl::StrJoin(plan.servers, ", "), "S, parameter servers in total");
  add_said("memory-gb", plan.memory_gb > 0, plan.memory_gb, "per GPU");
  add_said("tflops", plan.tflops > 0, plan.tflops, "peak per GPU");
  add_said("utilization", plan.tflops > 0, plan.utilization,
           absl::StrFormat("of the peak, end to end: %.4g TFLOPS", plan.achieved_flops() * 1e-12));
  add_said("link", !plan.link.empty(), plan.link,
           "per GPU to other hosts, each way: data, pipeline");
  add_said("host-link", !plan.host_link.empty(), plan.host_link, "within a host: tensor");
  add("latency-us", plan.latency_us, "per message");
  add_said("tokens", plan.tokens > 0, plan.tokens, "to train on");
  add("days", plan.days, "deadline");
  add("batch-tokens", plan.batch_tokens,
      absl::StrFormat("per step: %.8g sequences", plan.sequences()));
  const uint64_t m = plan.micro_batches();
  add("micro-batch", plan.micro_batch,
      absl::StrFormat("sequences at once, m = %u: %s per step", m,
                      m == 1 ? "once" : absl::StrCat(m, " times")));
  add("recompute", plan.recompute, "of activations");
  return section;
}

PlanSection ParametersSection(const PlanInputs& plan) {
  PlanSection section{.key = "parameters", .title = "Parameters"};
  section.columns = {{"counted", "counted"}, {"parameters", "parameters"}};
  section.rows.push_back({"Psi, used in this plan", plan.parameters});
  if (!plan.shape) return section;
  section.rows.push_back({"lectures: V h + L (12 h^2 + 5 h)", LecturesParameters(*plan.shape)});
  section.rows.push_back({"a GPT-2 of that shape, with all biases, LayerNorm, positions",
                          DecoderParameters(*plan.shape)});
  return section;
}

}  // namespace tug
