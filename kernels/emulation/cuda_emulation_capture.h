// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMULATION_CUDA_EMULATION_CAPTURE_H_
#define TUG_KERNELS_EMULATION_CUDA_EMULATION_CAPTURE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/emulation/cuda_emulation_streams.h"

// Streams that record work instead of executing it: the implementation below
// kernels/cuda/toolkit/cuda_graph_emulated.cc. As with CUDA's thread-local captures, a call that a
// capturing thread may not make is an error, and so is then the end of the capture; other threads
// are not affected.
namespace tug::kernels::emulation {

// Recorded work, and the memory that only it uses.
class Capture;
using CapturePointer = std::shared_ptr<Capture>;

// From now on, Enqueue on that stream by the calling thread records the work. One capture per
// thread at a time.
absl::Status BeginCapture(void* stream);
absl::StatusOr<CapturePointer> EndCapture(void* stream);

// Queues all recorded work; may be called any number of times.
absl::Status EnqueueCapture(void* stream, const CapturePointer& capture);

// For the emulation itself. Return whether the calling thread captures that stream. If so, the
// capture takes over the work, or the scratch memory: each launch marks that memory as unwritten at
// this point of its order, and the capture frees it.
bool KeepWork(void* stream, Work& work);
bool KeepMemory(void* stream, void* memory);
// Error of a call that a capturing thread may not make; OkStatus if the thread is not capturing.
absl::Status CheckNotCapturing(absl::string_view call);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_EMULATION_CUDA_EMULATION_CAPTURE_H_
