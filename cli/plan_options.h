#ifndef TUG_CLI_PLAN_OPTIONS_H_
#define TUG_CLI_PLAN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collective/cost.h"
#include "plan/activation_bytes.h"
#include "plan/model_shape.h"
#include "plan/state_bytes.h"

namespace tug {

// What `tug plan` plans for: values of its options, in their units and with their defaults.
struct PlanOptions {
  // The model.
  double parameters = 0;                      // 0: those of the shape
  uint64_t layers = 0, width = 0, heads = 0;  // 0: not said
  uint64_t context = 2048;
  uint64_t vocabulary = 50257;  // GPT-2's and GPT-3's
  std::string precision = "mixed";
  std::optional<double> activations_gb;  // of a GPU, where they are said, not worked out
  double buffers_gb = 0;

  // The cluster. The GPU is an A100 of 80 GB with NVLink 3.0, its peak that of bf16; the lectures
  // count on 160 TFLOPS of it, about what Megatron-LM achieves from end to end.
  uint32_t gpus = 64;
  uint32_t host_gpus = 8;
  uint32_t tensor = 1;
  uint32_t pipeline = 1;
  bool sequence_parallel = false;
  std::vector<uint32_t> servers;  // empty: 1, an eighth of the workers, as many
  double memory_gb = 80;          // 0: not said
  double tflops = 312;            // 0: not said; there are no times then
  double utilization = 160.0 / 312;
  std::string link = "400gbit";        // InfiniBand NDR; empty: not said; there are no times then
  std::string host_link = "2400gbit";  // empty: as `link`
  double latency_us = 5;

  // The training.
  double tokens = 0;  // 0: not said
  double days = 30;
  double batch_tokens = 0;  // 0: a micro-batch for each worker
  uint32_t micro_batch = 1;
  std::string recompute = "none";
};

// The same, all numbers in their ranges and fitting together, with what follows from them.
struct PlanInputs : PlanOptions {
  bool is_job = false;
  uint32_t virtual_workers = 1;  // that push a gradient each: a job's, else as many as workers
  std::string no_shape = "give --layers, --width and --heads";  // why `shape` is not there
  std::optional<TransformerShape> shape;
  std::vector<std::string> exchange_notes;  // of a job
  StateBytes states;
  double push_bytes = 0;  // an element of a gradient, and of weights, as exchanged
  double pull_bytes = 0;

  bool has_times() const { return tflops > 0 && !link.empty(); }
  uint32_t data_parallel() const { return gpus / (tensor * pipeline); }
  // Of a GPU, as tensor and pipeline parallelism leave it.
  double local_parameters() const { return parameters / tensor / pipeline; }
  double achieved_flops() const { return tflops * 1e12 * utilization; }
  Recomputation recomputation() const;
  double sequences() const { return batch_tokens / static_cast<double>(context); }
  uint32_t pushes() const;  // of a worker
  // Of the busiest worker in a step, the last one perhaps not full.
  uint64_t micro_batches() const;
  // REQUIRES: has_times().
  LinkCost link_cost() const;
  LinkCost tensor_link_cost() const;  // within a host, as long as `tensor` fits in one
};

// `inputs`: the options, and of a job what it says beside them. Fills in what is 0 or empty and
// follows from others. Errors: INVALID_ARGUMENT, naming the option and what it may be. Pure.
absl::Status ResolvePlan(PlanInputs& inputs);

}  // namespace tug

#endif  // TUG_CLI_PLAN_OPTIONS_H_
