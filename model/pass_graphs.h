#ifndef TUG_MODEL_PASS_GRAPHS_H_
#define TUG_MODEL_PASS_GRAPHS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/cuda_graph.h"
#include "kernels/device.h"
#include "kernels/dropout.h"
#include "model/cuda_device.h"

namespace tug {

// What models of one device have in common.
struct DeviceQueue {
  int device;
  GraphUse graphs;
  kernels::cuda::Stream stream;
  uint64_t graph_launches = 0;
};

// Operations of a pass, collected with their arguments before the first of them is queued.
class CollectedPass {
 public:
  struct Operation {
    absl::string_view name;  // of a literal
    std::function<absl::Status()> queue;
  };

  // `queue(arguments...)` queues the operation; it depends on nothing else that changes.
  template <typename Queue, typename... Arguments>
  void Add(absl::string_view name, Queue queue, const Arguments&... arguments) {
    Write(name.size());
    key_.append(name.data(), name.size());
    (Write(arguments), ...);
    operations_.push_back({name, [=] { return queue(arguments...); }});
  }
  void Clear() {
    key_.clear();
    operations_.clear();
  }

  const std::vector<Operation>& operations() const { return operations_; }
  // Two passes with the same key queue the same, argument by argument.
  const std::string& key() const { return key_; }

 private:
  // Scalars and pointers as they are in memory; structures by their fields, which leaves out
  // what is between them.
  template <typename Scalar>
  requires std::is_scalar_v<Scalar>
  void Write(const Scalar& value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Write(const kernels::AttentionShape& s) {
    WriteAll(s.batch, s.queries, s.keys, s.heads, s.head_dim, s.causal, s.key_counts);
  }
  template <typename T>
  void Write(const kernels::AttentionOperands<T>& o) {
    WriteAll(o.q, o.k, o.v, o.q_stride, o.kv_stride);
  }
  void Write(const kernels::DropoutKey& k) { WriteAll(k.seed, k.step, k.sample, k.site); }
  void Write(const kernels::Objective& o) { WriteAll(o.label_smoothing, o.z_loss); }
  template <typename... Values>
  void WriteAll(const Values&... values) {
    (Write(values), ...);
  }

  std::string key_;
  std::vector<Operation> operations_;
};

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
    int times_kept_up = 0;  // of those, the last ones in which the GPU waited for the host
    std::optional<kernels::cuda::Graph> graph;
  };

  Known& KnownOf(const std::string& key);
  bool IsWorthAGraph(const Known& known) const;
  void Capture(const CollectedPass& pass, Known& known);
  absl::Status QueueEach(const CollectedPass& pass, Known& known);

  DeviceQueue& queue_;
  GraphUse use_;
  std::unordered_map<std::string, Known> known_;
  std::optional<kernels::cuda::Event> before_last_;  // operation of a pass
};

}  // namespace tug

#endif  // TUG_MODEL_PASS_GRAPHS_H_
