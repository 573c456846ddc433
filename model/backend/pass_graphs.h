// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_PASS_GRAPHS_H_
#define TUG_MODEL_BACKEND_PASS_GRAPHS_H_

#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/toolkit/cuda_graph.h"
#include "model/backend/collected_pass.h"
#include "model/backend/device_queue.h"

namespace tug {

// Submits passes to a GPU's stream: operation by operation, or as one CUDA graph each, which costs
// the host less. A pass is identified by its key, so a graph is launched only for the pass it was
// captured from. With dropout, whose random numbers depend on the step, no pass recurs.
//
// Not thread-safe.
class PassGraphs {
 public:
  // `queue` must outlive this.
  explicit PassGraphs(DeviceQueue& queue) : queue_(queue), use_(queue.graphs) {}

  // Queues the pass. Returns the first error of an operation, with its name; nothing is queued
  // after it.
  absl::Status Queue(const CollectedPass& pass);
  // Drops all known passes. Call when memory owned by operations is freed.
  void Forget() { known_.clear(); }

 private:
  struct Known {
    int times = 0;          // times queued operation by operation
    int times_kept_up = 0;  // latest consecutive ones, except the first, in which the GPU kept up
    std::optional<kernels::cuda::Graph> graph;
  };

  Known& KnownOf(const std::string& key);
  bool IsWorthAGraph(const Known& known) const;
  // False: the pass cannot be captured; all known passes are dropped.
  bool Capture(const CollectedPass& pass, Known& known);
  absl::Status QueueEach(const CollectedPass& pass, Known& known);

  DeviceQueue& queue_;
  GraphUse use_;
  std::unordered_map<std::string, Known> known_;
  std::optional<kernels::cuda::Event> before_last_;  // recorded before the last operation of a pass
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_PASS_GRAPHS_H_
