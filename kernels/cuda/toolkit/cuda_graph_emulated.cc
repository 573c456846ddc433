// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_graph.cc in tests: work queued on a stream during a capture is recorded, and each
// launch queues all of it.
#include <utility>

#include "base/status_macros.h"
#include "kernels/cuda/toolkit/cuda_graph.h"
#include "kernels/emulation/cuda_emulation_capture.h"

namespace tug::kernels::cuda {

struct Graph::State {
  emulation::CapturePointer captured;
};

void Graph::Destroy::operator()(State* state) const { delete state; }

absl::StatusOr<Graph> Graph::Capture(const Stream& stream,
                                     absl::FunctionRef<absl::Status()> queue) {
  RETURN_IF_ERROR(emulation::BeginCapture(stream.handle()));
  absl::Status status = queue();
  auto captured = emulation::EndCapture(stream.handle());
  status.Update(captured.status());
  RETURN_IF_ERROR(status);
  return Graph(std::unique_ptr<State, Destroy>(new State{*std::move(captured)}));
}

absl::Status Graph::Launch(const Stream& stream) const {
  return emulation::EnqueueCapture(stream.handle(), state_->captured);
}

}  // namespace tug::kernels::cuda
