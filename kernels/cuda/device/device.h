// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_DEVICE_H_
#define TUG_KERNELS_CUDA_DEVICE_DEVICE_H_

// A GPU's memory, streams and events: thin owners over the CUDA runtime. Three implementations:
// device_cuda.cc (--config=cuda); device_without_cuda.cc (any other build: functions that create or
// query return UNAVAILABLE); device_emulated.cc (tests: host memory, and streams that execute work
// immediately or as late as possible).
//
// Errors of all functions: UNAVAILABLE "no GPU: ..." (no usable GPU or driver, or a build without
// CUDA) or "no GPU supported by this build: ..." (compute capability below 8.0, or a
// driver too old for them), RESOURCE_EXHAUSTED (memory, with the bytes requested and, for device
// memory, those free), INTERNAL (all other CUDA errors; a kernel's fault is reported by the next
// wait, and the process can then no longer use the GPU). None ends the process.
//
// Work on one stream executes in order; streams synchronize through events only. Objects are
// movable and may be passed between threads, but only one thread at a time may use one, except that
// any thread may queue on a stream. They belong to the device that their thread used when they were
// created (UseDevice); threads that queue work on them must use the same device.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tug::kernels::cuda {

// OkStatus if this thread's device can be used.
absl::Status CheckGpu();

// Sets the device of the calling thread; a thread starts with device 0.
absl::Status UseDevice(int device);

// Numbers of the devices that this program has kernels for, among those visible through
// CUDA_VISIBLE_DEVICES; empty without a driver and in a build without CUDA. Does not initialize
// them: CheckGpu reports whether one can be used.
std::vector<int> ListDevices();

struct DeviceFacts {
  std::string name;
  int compute_major = 0;  // 9 of sm_90
  int compute_minor = 0;
  int multiprocessors = 0;
  size_t shared_bytes_per_block = 0;  // maximum per launch
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;
  double peak_bytes_per_second = 0;  // of its memory, reads plus writes; 0: unknown
};
// Facts about this thread's device.
absl::StatusOr<DeviceFacts> GetDeviceFacts();

// Its shared_bytes_per_block alone, cheap enough to query before every launch.
absl::StatusOr<size_t> SharedBytesPerBlock();

class Stream;

// Purpose of an event.
enum class EventUse {
  kOrder,  // waiting only; a host thread sleeps meanwhile
  kTime,   // TimeBetween, too; a host thread polls
};

// A point in a stream's order.
class Event {
 public:
  static absl::StatusOr<Event> Create(EventUse use = EventUse::kOrder);
  // Sets it to the end of the work queued on the stream so far; replaces an earlier Record.
  absl::Status Record(const Stream& stream) const;
  // Blocks the host until that work is done.
  absl::Status Synchronize() const;
  // Whether that work is done. Does not block.
  absl::StatusOr<bool> IsDone() const;

 private:
  friend class Stream;
  friend absl::StatusOr<absl::Duration> TimeBetween(const Event&, const Event&);
  struct Destroy {
    void operator()(void* event) const;
  };
  explicit Event(void* handle) : handle_(handle) {}
  std::unique_ptr<void, Destroy> handle_;
};

// Time from when the device passed `begin` until it passed `end`; precise to about a microsecond.
// REQUIRES: both were created for kTime, recorded, and are done.
absl::StatusOr<absl::Duration> TimeBetween(const Event& begin, const Event& end);

// The destructor does not wait: synchronize before memory that queued work uses is freed.
class Stream {
 public:
  static absl::StatusOr<Stream> Create();
  // Blocks the host until all queued work is done.
  absl::Status Synchronize() const;
  // Work queued from now on waits for the event as recorded now.
  absl::Status WaitFor(const Event& event) const;
  void* handle() const { return handle_.get(); }  // the cudaStream_t

 private:
  struct Destroy {
    void operator()(void* stream) const;
  };
  explicit Stream(void* handle) : handle_(handle) {}
  std::unique_ptr<void, Destroy> handle_;
};

// Device memory, uninitialized, 256-byte aligned. Freeing waits for the device.
class DeviceBuffer {
 public:
  static absl::StatusOr<DeviceBuffer> Create(size_t size_bytes);
  size_t size_bytes() const { return size_bytes_; }
  void* data() const { return data_.get(); }
  // Its address as elements, for kernels: the host must not read it.
  template <typename T>
  T* As() const {
    return static_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(void* data) const;
  };
  DeviceBuffer(void* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  std::unique_ptr<void, Free> data_;
  size_t size_bytes_ = 0;
};

// Device memory for work queued on one stream between Create and the destructor, e.g. a kernel's
// results for the next one. The destructor does not wait; the memory is freed once that work is
// done. Uninitialized, 256-byte aligned. The device keeps freed memory for reuse, so later steps
// need no allocation from the driver.
class ScratchBuffer {
 public:
  static absl::StatusOr<ScratchBuffer> Create(size_t size_bytes, const Stream& stream);
  template <typename T>
  T* As() const {
    return static_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void* stream;
    void operator()(void* data) const;
  };
  ScratchBuffer(void* data, void* stream) : data_(data, Free{stream}) {}
  std::unique_ptr<void, Free> data_;
};

// Host memory for asynchronous copies, uninitialized. Kernels may use it, slowly.
class PinnedBuffer {
 public:
  static absl::StatusOr<PinnedBuffer> Create(size_t size_bytes);
  size_t size_bytes() const { return size_bytes_; }
  void* data() const { return data_.get(); }
  template <typename T>
  T* As() const {
    return static_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(void* data) const;
  };
  PinnedBuffer(void* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  std::unique_ptr<void, Free> data_;
  size_t size_bytes_ = 0;
};

// Registers host memory owned by others, in whole pages, for asynchronous copies during its
// lifetime. Destroy it before the memory is freed, on any thread; this sets that thread's device to
// the one it was registered with. Errors also: INTERNAL if it cannot be registered, e.g. pages that
// are registered already or not writable.
class RegisteredMemory {
 public:
  // REQUIRES: `host` is page-aligned.
  static absl::StatusOr<RegisteredMemory> Create(void* host, size_t size_bytes);

 private:
  struct Unregister {
    int device;
    void operator()(void* host) const;
  };
  RegisteredMemory(void* host, int device) : host_(host, Unregister{device}) {}
  std::unique_ptr<void, Unregister> host_;
};

// Queued on the stream when they return; both ends must live until the copy is done. Host memory
// that is neither a PinnedBuffer's nor registered is allowed, but then the call may block, and the
// copy does not overlap with other work.
absl::Status CopyToDeviceAsync(void* device, const void* host, size_t bytes, const Stream& stream);
absl::Status CopyToHostAsync(void* host, const void* device, size_t bytes, const Stream& stream);
absl::Status CopyOnDeviceAsync(void* to, const void* from, size_t bytes, const Stream& stream);
// Copies `rows` rows of `row_bytes`, whose starts are `to_stride` and `from_stride` bytes apart.
absl::Status CopyRowsOnDeviceAsync(void* to, size_t to_stride, const void* from, size_t from_stride,
                                   size_t row_bytes, size_t rows, const Stream& stream);
absl::Status FillZeroAsync(void* device, size_t bytes, const Stream& stream);

// Whether all of these pointers are aligned to 16 bytes, the most that a thread reads at once and
// the requirement of fast products. Null pointers are.
template <typename... P>
bool AtVectors(const P*... p) {
  return ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...);
}

// Status of a cudaError_t returned by `call`, for code that calls the CUDA runtime directly. In
// builds with --config=cuda only.
absl::Status CudaStatus(int error, absl::string_view call);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_DEVICE_H_
