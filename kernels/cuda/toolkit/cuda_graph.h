// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_TOOLKIT_CUDA_GRAPH_H_
#define TUG_KERNELS_CUDA_TOOLKIT_CUDA_GRAPH_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// Work captured from a stream, to be queued again as a whole: a CUDA graph. A launch costs the host
// about as much as one or two kernels, and the device proceeds from kernel to kernel without the
// host.
//
// Kernels keep their arguments by value, so the memory they point to must outlive the graph.
// Scratch memory belongs to the graph, at the same address in every launch. Objects are movable,
// not thread-safe, and may be destroyed while their launches are still running.
class Graph {
 public:
  // Captures the work that `queue` queues on the stream, without executing it: kernels, products,
  // fills, copies between device memories, scratch memory that is freed again. Meanwhile the
  // calling thread must use no event of the stream, wait for nothing and allocate no other memory,
  // and no other thread may use the stream. Each kernel must have been launched before: loading one
  // cannot be captured.
  // Errors: queue's own; those of kernels/cuda/device/device.h, also if `queue` does something that
  // is not allowed or there is too little memory for the graph's scratch, which is allocated here.
  // After an error the stream is as before.
  static absl::StatusOr<Graph> Capture(const Stream& stream,
                                       absl::FunctionRef<absl::Status()> queue);

  // Queues all captured work on the stream, which must be of the same device.
  absl::Status Launch(const Stream& stream) const;

 private:
  struct State;  // defined in each .cc file
  struct Destroy {
    void operator()(State* state) const;
  };
  explicit Graph(std::unique_ptr<State, Destroy> state) : state_(std::move(state)) {}
  std::unique_ptr<State, Destroy> state_;
};

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_TOOLKIT_CUDA_GRAPH_H_
