#ifndef TUG_MODEL_PASS_GRAPHS_H_
#define TUG_MODEL_PASS_GRAPHS_H_

#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "kernels/cuda_graph.h"
#include "kernels/device.h"
#include "model/collected_pass.h"
#include "model/device_queue.h"

namespace tug {

// How passes come to a GPU's stream: operation by operation, or as one CUDA graph each, which costs
// the host less. A pass is known by its key, so that a graph is launched only for what it was
// captured from; with dropout, whose random numbers follow the step, no pass comes twice.
//
// Not thread-safe.
class PassGraphs {
 public:
  // `queue` outlives this.
  explicit PassGraphs(DeviceQueue& queue) : queue_(queue), use_(queue.graphs) {}

  // Queues the pass. The first error of an operation, with its name; behind it nothing is queued.
  absl::Status Queue(const CollectedPass& pass);
  // No pass is known any more: of memory that operations have by themselves some goes.
  void Forget() { known_.clear(); }

 private:
  struct Known {
    int times = 0;          // queued operation by operation
    int times_kept_up = 0;  // of those, but not the first: the last ones, when the GPU kept up
    std::optional<kernels::cuda::Graph> graph;
  };

  Known& KnownOf(const std::string& key);
  bool IsWorthAGraph(const Known& known) const;
  // False: it cannot be, and nothing is known any more.
  bool Capture(const CollectedPass& pass, Known& known);
  absl::Status QueueEach(const CollectedPass& pass, Known& known);

  DeviceQueue& queue_;
  GraphUse use_;
  std::unordered_map<std::string, Known> known_;
  std::optional<kernels::cuda::Event> before_last_;  // operation of a pass
};

}  // namespace tug

#endif  // TUG_MODEL_PASS_GRAPHS_H_
