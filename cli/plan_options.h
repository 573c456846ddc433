#ifndef TUG_CLI_PLAN_OPTIONS_H_
#define TUG_CLI_PLAN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/cost.h"
#include "plan/activation_bytes.h"
#include "plan/memory_by_stage.h"
#include "plan/model_shape.h"

namespace tug {

// What the options of `tug plan` say, as they are written; a preset and a job file are values of
// the same options, which those of the command line override.
struct PlanOptions {
  // The model.
  std::optional<double> parameters;
  std::optional<uint64_t> layers, width, heads, context, vocabulary;
  std::optional<std::string> precision;  // mixed, fp32
  // The cluster.
  std::optional<uint32_t> gpus, tensor, pipeline;
  std::optional<std::vector<uint32_t>> servers;
  std::optional<double> memory_gb, tflops, utilization, latency_us;
  std::optional<std::string> link, host_link;
  // The training.
  std::optional<double> tokens, days, batch_tokens;
  std::optional<uint32_t> micro_batch;
  std::optional<std::string> recompute;  // none, selective, full
  std::optional<double> activations_gb, buffers_gb;
};

// Values of `above`, and where it has none those of `below`.
PlanOptions Overlay(const PlanOptions& above, const PlanOptions& below);

// A model and a cluster that can be planned: every number in its range, and all of them fit
// together.
struct PlanInputs {
  double parameters = 0;
  std::optional<TransformerShape> shape;
  uint64_t context = 0;
  bool mixed = true;
  StateBytes states;

  uint32_t gpus = 1;
  uint32_t tensor = 1;
  uint32_t pipeline = 1;
  std::vector<uint32_t> servers;  // ascending
  double gpu_memory_bytes = 0;
  double peak_flops = 0;
  double utilization = 0;
  std::string link_text, host_link_text;
  LinkCost link;       // between hosts: data and pipeline parallelism
  LinkCost host_link;  // within a host: tensor parallelism

  double tokens = 0;  // 0: not said
  double days = 0;
  double batch_tokens = 0;  // of a step, all GPUs
  uint32_t micro_batch = 1;
  Recomputation recomputation = Recomputation::kNone;
  std::optional<double> activation_bytes;  // of a GPU, where they are said, not worked out
  double buffer_bytes = 0;

  uint32_t data_parallel() const { return gpus / (tensor * pipeline); }
  // Of a GPU, as tensor and pipeline parallelism leave it.
  double local_parameters() const { return parameters / tensor / pipeline; }
  // Bytes of an element that is exchanged: gradients and weights.
  double exchanged_bytes() const { return states.parameters; }
  double achieved_flops() const { return peak_flops * utilization; }
  double sequences() const { return batch_tokens / static_cast<double>(context); }
  // Of each data-parallel group in a step; the last one may be smaller.
  uint64_t micro_batches() const;
};

// Errors: INVALID_ARGUMENT, naming the option and what it may be. Pure.
absl::StatusOr<PlanInputs> ResolvePlan(const PlanOptions& options);

}  // namespace tug

#endif  // TUG_CLI_PLAN_OPTIONS_H_
