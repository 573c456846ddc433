// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMULATION_CUDA_EMULATION_STREAMS_H_
#define TUG_KERNELS_EMULATION_CUDA_EMULATION_STREAMS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Streams and events of emulated GPUs: the implementation below
// kernels/cuda/device/device_emulated.cc and Launch of kernels/cuda/device/cuda_language.h. Tests
// choose one of two modes (kernels/emulation/cuda_emulation_late.h): immediate, where the calling
// thread executes the work at once; or late, where the stream is a queue and threads that call one
// of these functions execute its work later. Thread-safe. In late mode one piece of work executes
// at a time over all devices and threads; in immediate mode threads do not wait for each other.
namespace tug::kernels::emulation {

// Work of a stream. Must not block or call these functions. An error becomes the device's: no more
// work executes there, and all calls that wait or queue return it.
using Work = std::function<absl::Status()>;

// Creates a stream of that device.
void* NewStream(int device);
// Work already queued is still executed.
void DestroyStream(void* stream);

// In immediate mode returns the work's own errors.
absl::Status Enqueue(void* stream, Work work);
// Executes `work` even after an error.
void EnqueueAlways(void* stream, std::function<void()> work);
// For a copy of unpinned memory: may execute it before returning.
absl::Status EnqueuePageable(void* stream, Work work);

// A position in a stream's order, done once all work before it is. Null: a mark that was done long
// ago.
struct Mark;
using MarkPointer = std::shared_ptr<Mark>;
// Marks the end of the work queued so far.
absl::StatusOr<MarkPointer> RecordMark(void* stream);
// Work queued from now on waits for the mark, which may be of another device.
absl::Status WaitForMark(void* stream, MarkPointer mark);
// Does not block. When called repeatedly, it eventually returns true.
absl::StatusOr<bool> IsDone(const MarkPointer& mark);
// Time when the mark was done: InfinitePast for null, InfiniteFuture while it is not done.
absl::Time TimeOf(const MarkPointer& mark);

// Block until the mark or the stream's work is done.
absl::Status AwaitMark(const MarkPointer& mark);
absl::Status AwaitStream(void* stream);
// Does not report errors.
void AwaitDevice(int device);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_EMULATION_CUDA_EMULATION_STREAMS_H_
