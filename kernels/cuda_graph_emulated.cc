// In place of cuda_graph.cc in tests: what a stream is given while it is captured is kept, and a
// launch gives it all of that.
#include <utility>

#include "base/status_macros.h"
#include "kernels/cuda_emulation_capture.h"
#include "kernels/cuda_graph.h"

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
