#ifndef TUG_KERNELS_CUDA_EMULATION_STREAMS_H_
#define TUG_KERNELS_CUDA_EMULATION_STREAMS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Streams and events of emulated GPUs: what is below kernels/device_emulated.cc and Launch of
// kernels/cuda_language.h. Two modes, which tests choose (kernels/cuda_emulation_late.h): a stream
// does at once what it is given, on the thread that gives it; or it is a queue, and does it late,
// on a thread that calls one of these functions. Thread-safe. Late, one thing is done at a time
// whatever device and thread it is of; at once, threads do not wait for each other.
namespace tug::kernels::emulation {

// What a stream is to do. Waits for nobody and calls none of these functions. Its error is the
// device's from there on: nothing more is done there, and all that waits or queues returns it.
using Work = std::function<absl::Status()>;

// The handle of a Stream of that device.
void* NewStream(int device);
// What is queued is done all the same.
void DestroyStream(void* stream);

// At once: the work's own errors.
absl::Status Enqueue(void* stream, Work work);
// Behind an error too.
void EnqueueAlways(void* stream, std::function<void()> work);
// Of a copy that the device does not make by itself: may do it before it returns.
absl::Status EnqueuePageable(void* stream, Work work);

// A place in a stream's order, which is done when all before it is. Null stands for one that has
// long been done.
struct Mark;
using MarkPointer = std::shared_ptr<Mark>;
// Of what is queued so far.
absl::StatusOr<MarkPointer> RecordMark(void* stream);
// What is queued from here on waits for the mark, which may be another device's.
absl::Status WaitForMark(void* stream, MarkPointer mark);
// Does not wait. Asked again and again it comes to be done.
absl::StatusOr<bool> IsDone(const MarkPointer& mark);
// When that was; InfinitePast of null, InfiniteFuture until it is done.
absl::Time TimeOf(const MarkPointer& mark);

// Block until that is done.
absl::Status AwaitMark(const MarkPointer& mark);
absl::Status AwaitStream(void* stream);
// Tells nobody of an error.
void AwaitDevice(int device);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_CUDA_EMULATION_STREAMS_H_
