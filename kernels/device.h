#ifndef TUG_KERNELS_DEVICE_H_
#define TUG_KERNELS_DEVICE_H_

// A GPU's memory, streams and events: thin owners over the CUDA runtime. Three implementations:
// device_cuda.cc (--config=cuda), device_without_cuda.cc (any other build: all that makes or asks
// says UNAVAILABLE), device_emulated.cc (tests: host memory, a stream does what it is given at
// once or as late as may be).
//
// Errors of all functions: UNAVAILABLE "no GPU: ..." (no usable GPU or driver, or a build without
// CUDA) or "no GPU that this program has kernels for: ..." (compute capability below 8.0, or a
// driver too old for them), RESOURCE_EXHAUSTED (memory, naming bytes wanted, and of device memory
// those that are free), INTERNAL (all else that CUDA says; a kernel's fault comes with whatever
// waits next, and the process can then no longer use the GPU). None ends the process.
//
// What is queued on one stream happens in order; streams know of each other by events only. Objects
// move, may be given from thread to thread, and are not for two threads at a time, except that any
// thread may queue on a stream. They belong to the device that their thread used when they were
// made (UseDevice), and what is queued on them goes there from threads which use it too.

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

// OkStatus when this thread's device can be used.
absl::Status CheckGpu();

// Of the calling thread, from here on; a thread begins with device 0.
absl::Status UseDevice(int device);

// Numbers of the devices that this program has kernels for, of those that CUDA_VISIBLE_DEVICES lets
// it see; none where there is no driver, and in a build without CUDA. Whether one can be used
// CheckGpu says: this makes nothing on it.
std::vector<int> ListDevices();

struct DeviceFacts {
  std::string name;
  int compute_major = 0;  // 9 of sm_90
  int compute_minor = 0;
  int multiprocessors = 0;
  size_t shared_bytes_per_block = 0;  // the most that a launch may ask for
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;
  double peak_bytes_per_second = 0;  // of its memory, reads and writes together; 0: not told
};
// Of this thread's device.
absl::StatusOr<DeviceFacts> GetDeviceFacts();

// Its shared_bytes_per_block alone, cheap enough to ask for before every launch.
absl::StatusOr<size_t> SharedBytesPerBlock();

class Stream;

// What an event is for.
enum class EventUse {
  kOrder,  // to be waited for; a thread of the host sleeps meanwhile
  kTime,   // TimeBetween too; it polls
};

// A point in a stream's order.
class Event {
 public:
  static absl::StatusOr<Event> Create(EventUse use = EventUse::kOrder);
  // Sets it to what is queued on the stream so far; the last call counts.
  absl::Status Record(const Stream& stream) const;
  // Blocks the host until that is done.
  absl::Status Synchronize() const;
  // Whether that is done. Does not wait.
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

// From when the device passed `begin` until it passed `end`, both made for kTime, recorded and
// done; to about a microsecond.
absl::StatusOr<absl::Duration> TimeBetween(const Event& begin, const Event& end);

// Its destructor does not wait: synchronise before what the queued work uses goes away.
class Stream {
 public:
  static absl::StatusOr<Stream> Create();
  // Blocks the host until all that is queued is done.
  absl::Status Synchronize() const;
  // What is queued from here on waits for the event as it is recorded now.
  absl::Status WaitFor(const Event& event) const;
  void* handle() const { return handle_.get(); }  // the cudaStream_t

 private:
  struct Destroy {
    void operator()(void* stream) const;
  };
  explicit Stream(void* handle) : handle_(handle) {}
  std::unique_ptr<void, Destroy> handle_;
};

// Device memory, unwritten; 256-byte boundary. Freeing waits for the device.
class DeviceBuffer {
 public:
  static absl::StatusOr<DeviceBuffer> Create(size_t size_bytes);
  size_t size_bytes() const { return size_bytes_; }
  void* data() const { return data_.get(); }
  // The same as elements, for kernels: the host must not read there.
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

// Device memory for what is queued on one stream between Create and the destructor, which neither
// waits nor lets go of it before that is done: what a kernel leaves for the next. Unwritten;
// 256-byte boundary. Its device keeps what is freed for the next one, so that a second step asks
// nobody.
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

// Host memory that the device copies from and to by itself, unwritten. Kernels may use it, slowly.
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

// Host memory of somebody else, whole pages of it, that the device copies from and to by itself
// while this lives; it goes before the memory does, on any thread, which from there on uses the
// device that it was registered with. Errors also: INTERNAL where that cannot be, as of pages that
// are registered or may not be written.
class RegisteredMemory {
 public:
  // REQUIRES: `host` is at the boundary of a page.
  static absl::StatusOr<RegisteredMemory> Create(void* host, size_t size_bytes);

 private:
  struct Unregister {
    int device;
    void operator()(void* host) const;
  };
  RegisteredMemory(void* host, int device) : host_(host, Unregister{device}) {}
  std::unique_ptr<void, Unregister> host_;
};

// Queued on the stream when they return; both ends must live until it is done. Host memory that is
// neither a PinnedBuffer's nor registered is taken too, but then the call may block, and overlaps
// with nothing.
absl::Status CopyToDeviceAsync(void* device, const void* host, size_t bytes, const Stream& stream);
absl::Status CopyToHostAsync(void* host, const void* device, size_t bytes, const Stream& stream);
absl::Status CopyOnDeviceAsync(void* to, const void* from, size_t bytes, const Stream& stream);
// `rows` rows of `row_bytes`, whose beginnings lie so many bytes apart at either end.
absl::Status CopyRowsOnDeviceAsync(void* to, size_t to_stride, const void* from, size_t from_stride,
                                   size_t row_bytes, size_t rows, const Stream& stream);
absl::Status FillZeroAsync(void* device, size_t bytes, const Stream& stream);

// Whether all of these begin at boundaries of 16 bytes, the most that a thread reads at once
// and what fast products ask for. Null does.
template <typename... P>
bool AtVectors(const P*... p) {
  return ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...);
}

// For those who call the CUDA runtime themselves: the status of a cudaError_t that `call` gave. In
// builds with --config=cuda only.
absl::Status CudaStatus(int error, absl::string_view call);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_DEVICE_H_
