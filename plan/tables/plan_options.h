// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_TABLES_PLAN_OPTIONS_H_
#define TUG_PLAN_TABLES_PLAN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collective/schedules/cost.h"
#include "plan/activation_bytes.h"
#include "plan/model_shape.h"
#include "plan/state_bytes.h"

namespace tug {

// Options of `tug plan` in their units, with their defaults.
struct PlanOptions {
  // The model.
  double parameters = 0;                      // 0: from the shape
  uint64_t layers = 0, width = 0, heads = 0;  // 0: not given
  uint64_t context = 2048;
  uint64_t vocabulary = 50257;  // GPT-2's and GPT-3's
  std::string precision = "mixed";
  std::optional<double> activations_gb;  // per GPU; empty: computed
  double buffers_gb = 0;

  // The cluster. The GPU is an A100 of 80 GB with NVLink 3.0; its peak is for bf16. The lectures
  // assume 160 TFLOPS, about what Megatron-LM achieves end to end.
  uint32_t gpus = 64;
  uint32_t host_gpus = 8;
  uint32_t tensor = 1;
  uint32_t pipeline = 1;
  bool sequence_parallel = false;
  std::vector<uint32_t> servers;  // empty: 1, an eighth of the workers, as many as workers
  double memory_gb = 80;          // 0: not given
  double tflops = 312;            // 0: not given; then there are no times
  double utilization = 160.0 / 312;
  std::string link = "400gbit";        // InfiniBand NDR; empty: not given; then there are no times
  std::string host_link = "2400gbit";  // empty: as `link`
  double latency_us = 5;

  // The training.
  double tokens = 0;  // 0: not given
  double days = 30;
  double batch_tokens = 0;  // 0: one micro-batch per worker
  uint32_t micro_batch = 1;
  std::string recompute = "none";
};

// Checked and consistent options, with the values derived from them.
struct PlanInputs : PlanOptions {
  bool is_job = false;
  uint32_t virtual_workers = 1;  // with a push each: a job's, else one per worker
  std::string no_shape = "give --layers, --width and --heads";  // why `shape` is missing
  std::optional<TransformerShape> shape;
  std::vector<std::string> exchange_notes;  // for a job
  StateBytes states;
  double push_bytes = 0;  // per element of a gradient, and of weights, as exchanged
  double pull_bytes = 0;

  bool has_times() const { return tflops > 0 && !link.empty(); }
  uint32_t data_parallel() const { return gpus / (tensor * pipeline); }
  // Per GPU, after tensor and pipeline parallelism.
  double local_parameters() const { return parameters / tensor / pipeline; }
  double achieved_flops() const { return tflops * 1e12 * utilization; }
  Recomputation recomputation() const;
  double sequences() const { return batch_tokens / static_cast<double>(context); }
  uint32_t pushes() const;  // per worker
  // Micro-batches of the busiest worker in a step; the last one may be partial.
  uint64_t micro_batches() const;
  // REQUIRES: has_times().
  LinkCost link_cost() const;
  LinkCost tensor_link_cost() const;  // within a host, if `tensor` fits in one
};

// Fills in values that are 0 or empty and follow from others. `inputs`: the options, and for a job
// its own values. Errors: INVALID_ARGUMENT, naming the option and its valid values. Pure.
absl::Status ResolvePlan(PlanInputs& inputs);

}  // namespace tug

#endif  // TUG_PLAN_TABLES_PLAN_OPTIONS_H_
