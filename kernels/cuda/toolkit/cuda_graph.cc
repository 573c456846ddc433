// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/toolkit/cuda_graph.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "base/status_macros.h"

namespace tug::kernels::cuda {
namespace {

cudaStream_t Of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }

}  // namespace

// The graph must outlive its executable: scratch memory belongs to it.
struct Graph::State {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

void Graph::Destroy::operator()(State* state) const {
  if (state->executable != nullptr) cudaGraphExecDestroy(state->executable);
  if (state->graph != nullptr) cudaGraphDestroy(state->graph);
  delete state;
}

absl::StatusOr<Graph> Graph::Capture(const Stream& stream,
                                     absl::FunctionRef<absl::Status()> queue) {
  // Thread-local mode: other threads are not restricted.
  RETURN_IF_ERROR(CudaStatus(cudaStreamBeginCapture(Of(stream), cudaStreamCaptureModeThreadLocal),
                             "cudaStreamBeginCapture"));
  absl::Status status = queue();
  std::unique_ptr<State, Destroy> state(new State);
  status.Update(
      CudaStatus(cudaStreamEndCapture(Of(stream), &state->graph), "cudaStreamEndCapture"));
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(CudaStatus(cudaGraphInstantiate(&state->executable, state->graph, /*flags=*/0),
                             "cudaGraphInstantiate"));
  // Allocates the scratch memory now, or reports that it cannot: otherwise the first launch would.
  RETURN_IF_ERROR(CudaStatus(cudaGraphUpload(state->executable, Of(stream)), "cudaGraphUpload"));
  return Graph(std::move(state));
}

absl::Status Graph::Launch(const Stream& stream) const {
  return CudaStatus(cudaGraphLaunch(state_->executable, Of(stream)), "cudaGraphLaunch");
}

}  // namespace tug::kernels::cuda
