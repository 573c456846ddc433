#ifndef TUG_KERNELS_CUDA_EMULATION_CAPTURE_H_
#define TUG_KERNELS_CUDA_EMULATION_CAPTURE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda_emulation_streams.h"

// Streams whose work is kept rather than done: what is below kernels/cuda_graph_emulated.cc. As of
// CUDA's thread-local captures, what the capturing thread may not do meanwhile is an error, and so
// is then the end of the capture; other threads go on.
namespace tug::kernels::emulation {

// Work, and memory that it alone uses.
class Capture;
using CapturePointer = std::shared_ptr<Capture>;

// From here on the calling thread's Enqueue on that stream keeps what it is given. One at a time.
absl::Status BeginCapture(void* stream);
absl::StatusOr<CapturePointer> EndCapture(void* stream);

// Queues all that was kept, as often as is wanted.
absl::Status EnqueueCapture(void* stream, const CapturePointer& capture);

// For the emulation itself. Of the calling thread: whether it captures that stream, and then has
// the work, or the scratch memory, which from here on in each launch's order holds nothing, and
// whose end is the capture's.
bool KeepWork(void* stream, Work& work);
bool KeepMemory(void* stream, void* memory);
// Of a call that no capturing thread may make: OkStatus where it does not capture.
absl::Status CheckNotCapturing(absl::string_view call);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_CUDA_EMULATION_CAPTURE_H_
