// SPDX-License-Identifier: Apache-2.0
// Replaces device_cuda.cc in tests: device memory is host memory, and streams execute queued work
// at once or late (kernels/emulation/cuda_emulation_late.h).
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/cuda/device/device.h"
#include "kernels/emulation/cuda_emulation_capture.h"
#include "kernels/emulation/cuda_emulation_memory.h"
#include "kernels/emulation/cuda_emulation_streams.h"

namespace tug::kernels::cuda {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{4} << 30;
constexpr size_t kSharedBytesPerBlock = size_t{163} << 10;

struct EmulatedEvent {
  bool timed = false;
  emulation::MarkPointer recorded;
};

EmulatedEvent& Of(void* event) { return *static_cast<EmulatedEvent*>(event); }

absl::Status CheckRange(const void* device, size_t bytes) {
  if (bytes == 0 || emulation::IsDeviceRange(device, bytes)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(bytes, " bytes that are not entirely in device memory"));
}

absl::StatusOr<void*> Allocate(size_t bytes, void* (*allocate)(size_t)) {
  void* const data = bytes <= kMemoryBytes ? allocate(bytes) : nullptr;
  if (data != nullptr) return data;
  return absl::ResourceExhaustedError(
      absl::StrCat(bytes, " bytes requested; an emulated GPU has ", kMemoryBytes));
}

// Registered host memory, in whole pages. Thread-safe.
class PageRanges {
 public:
  // Returns false, and adds nothing, if `begin` is not page-aligned or a page is registered
  // already.
  bool Add(uintptr_t begin, size_t size_bytes) {
    if (begin == 0 || begin % kPageBytes != 0 || size_bytes == 0) return false;
    const uintptr_t end = (begin + size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    absl::MutexLock lock(&mutex_);
    const auto behind = end_.lower_bound(end);
    if (behind != end_.begin() && std::prev(behind)->second > begin) return false;
    end_.emplace(begin, end);
    return true;
  }
  bool Holds(const void* memory, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    absl::MutexLock lock(&mutex_);
    const auto after = end_.upper_bound(begin);
    return after != end_.begin() && begin + bytes <= std::prev(after)->second;
  }
  void Remove(uintptr_t begin) {
    absl::MutexLock lock(&mutex_);
    TUG_CHECK_EQ(end_.erase(begin), 1u);
  }

 private:
  static constexpr size_t kPageBytes = 4096;
  absl::Mutex mutex_;
  std::map<uintptr_t, uintptr_t> end_ ABSL_GUARDED_BY(mutex_);  // by begin
};

PageRanges& RegisteredPages() {
  static auto* const pages = new PageRanges;
  return *pages;
}

// Whether the device can copy from and to this memory asynchronously.
bool IsPinned(const void* host, size_t bytes) {
  return emulation::IsDeviceRange(host, bytes) || RegisteredPages().Holds(host, bytes);
}

// Copies within device memory.
absl::Status Copy(void* to, const void* from, size_t bytes) {
  RETURN_IF_ERROR(CheckRange(to, bytes));
  RETURN_IF_ERROR(CheckRange(from, bytes));
  const emulation::DeviceAccess access;
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

// Queues a copy between `device` and `host`, one of which is `to`, the other `from`.
absl::Status QueueCopy(void* to, const void* from, size_t bytes, const void* device,
                       const void* host, const Stream& stream) {
  if (bytes == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckRange(device, bytes));
  const bool pinned = IsPinned(host, bytes);
  const auto copy = [=]() -> absl::Status {
    RETURN_IF_ERROR(CheckRange(device, bytes));
    if (pinned && !IsPinned(host, bytes)) {
      return absl::InternalError(
          absl::StrCat("a copy of ", bytes, " bytes runs after their host memory was unpinned"));
    }
    const emulation::DeviceAccess access;
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  };
  return pinned ? emulation::Enqueue(stream.handle(), copy)
                : emulation::EnqueuePageable(stream.handle(), copy);
}

}  // namespace

absl::Status CheckGpu() { return absl::OkStatus(); }

absl::Status UseDevice(int device) {
  if (device < 0 || device >= emulation::DeviceCount()) {
    return absl::UnavailableError(
        absl::StrCat("no GPU: number ", device, " of ", emulation::DeviceCount(), " emulated"));
  }
  emulation::SetThisDevice(device);
  return absl::OkStatus();
}

std::vector<int> ListDevices() {
  std::vector<int> devices(static_cast<size_t>(emulation::DeviceCount()));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

absl::StatusOr<DeviceFacts> GetDeviceFacts() {
  return DeviceFacts{.name = "emulated on the CPU",
                     .compute_major = 8,
                     .compute_minor = 0,
                     .multiprocessors = 1,
                     .shared_bytes_per_block = kSharedBytesPerBlock,
                     .memory_bytes = kMemoryBytes,
                     .free_bytes = kMemoryBytes};
}

absl::StatusOr<size_t> SharedBytesPerBlock() { return kSharedBytesPerBlock; }

absl::StatusOr<Event> Event::Create(EventUse use) {
  return Event(new EmulatedEvent{.timed = use == EventUse::kTime});
}
void Event::Destroy::operator()(void* event) const { delete static_cast<EmulatedEvent*>(event); }
absl::Status Event::Record(const Stream& stream) const {
  ASSIGN_OR_RETURN(Of(handle_.get()).recorded, emulation::RecordMark(stream.handle()));
  return absl::OkStatus();
}
absl::Status Event::Synchronize() const { return emulation::AwaitMark(Of(handle_.get()).recorded); }
absl::StatusOr<bool> Event::IsDone() const { return emulation::IsDone(Of(handle_.get()).recorded); }

absl::StatusOr<absl::Duration> TimeBetween(const Event& begin, const Event& end) {
  const EmulatedEvent &first = Of(begin.handle_.get()), &last = Of(end.handle_.get());
  if (!first.timed || !last.timed) {
    return absl::InternalError("time between events created without timing");
  }
  const absl::Time from = emulation::TimeOf(first.recorded), to = emulation::TimeOf(last.recorded);
  if (from == absl::InfinitePast() || to == absl::InfinitePast()) {
    return absl::InternalError("time between events that are not recorded");
  }
  if (from == absl::InfiniteFuture() || to == absl::InfiniteFuture()) {
    return absl::InternalError("time between events that are not done");
  }
  return to - from;
}

absl::StatusOr<Stream> Stream::Create() {
  return Stream(emulation::NewStream(emulation::ThisDevice()));
}
void Stream::Destroy::operator()(void* stream) const { emulation::DestroyStream(stream); }
absl::Status Stream::Synchronize() const { return emulation::AwaitStream(handle()); }
absl::Status Stream::WaitFor(const Event& event) const {
  return emulation::WaitForMark(handle(), Of(event.handle_.get()).recorded);
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Create(size_t size_bytes) {
  RETURN_IF_ERROR(emulation::CheckNotCapturing("an allocation"));
  ASSIGN_OR_RETURN(void* const data, Allocate(size_bytes, emulation::AllocateDeviceBytes));
  return DeviceBuffer(data, size_bytes);
}
void DeviceBuffer::Free::operator()(void* data) const {
  emulation::CheckNotCapturing("the end of an allocation").IgnoreError();
  emulation::AwaitDevice(emulation::ThisDevice());
  emulation::FreeDeviceBytes(data);
}

absl::StatusOr<ScratchBuffer> ScratchBuffer::Create(size_t size_bytes, const Stream& stream) {
  ASSIGN_OR_RETURN(void* const data, Allocate(size_bytes, emulation::AllocateDeviceBytes));
  // Reset in the stream's order: what another stream wrote there before is lost.
  const absl::Status queued = emulation::Enqueue(stream.handle(), [=] {
    emulation::SetUnwritten(data);
    return absl::OkStatus();
  });
  ScratchBuffer buffer(data, stream.handle());
  RETURN_IF_ERROR(queued);
  return buffer;
}
void ScratchBuffer::Free::operator()(void* data) const {
  if (emulation::KeepMemory(stream, data)) return;
  emulation::EnqueueAlways(stream, [data] { emulation::FreeDeviceBytes(data); });
}

// Also counts as device memory: kernels may use it.
absl::StatusOr<PinnedBuffer> PinnedBuffer::Create(size_t size_bytes) {
  RETURN_IF_ERROR(emulation::CheckNotCapturing("an allocation"));
  ASSIGN_OR_RETURN(void* const data, Allocate(size_bytes, emulation::AllocatePinnedBytes));
  return PinnedBuffer(data, size_bytes);
}
void PinnedBuffer::Free::operator()(void* data) const {
  emulation::CheckNotCapturing("the end of an allocation").IgnoreError();
  emulation::FreeDeviceBytes(data);
}

absl::StatusOr<RegisteredMemory> RegisteredMemory::Create(void* host, size_t size_bytes) {
  RETURN_IF_ERROR(emulation::CheckNotCapturing("registering"));
  if (!RegisteredPages().Add(reinterpret_cast<uintptr_t>(host), size_bytes)) {
    return absl::InternalError(
        absl::StrCat(size_bytes, " bytes are not page-aligned, or are already registered"));
  }
  return RegisteredMemory(host, /*device=*/0);
}
void RegisteredMemory::Unregister::operator()(void* host) const {
  emulation::CheckNotCapturing("unregistering").IgnoreError();
  RegisteredPages().Remove(reinterpret_cast<uintptr_t>(host));
}

absl::Status CopyToDeviceAsync(void* device, const void* host, size_t bytes, const Stream& stream) {
  return QueueCopy(device, host, bytes, device, host, stream);
}

absl::Status CopyToHostAsync(void* host, const void* device, size_t bytes, const Stream& stream) {
  return QueueCopy(host, device, bytes, device, host, stream);
}

absl::Status CopyOnDeviceAsync(void* to, const void* from, size_t bytes, const Stream& stream) {
  return CopyRowsOnDeviceAsync(to, bytes, from, bytes, bytes, /*rows=*/1, stream);
}

absl::Status CopyRowsOnDeviceAsync(void* to, size_t to_stride, const void* from, size_t from_stride,
                                   size_t row_bytes, size_t rows, const Stream& stream) {
  if (row_bytes == 0 || rows == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckRange(to, (rows - 1) * to_stride + row_bytes));
  RETURN_IF_ERROR(CheckRange(from, (rows - 1) * from_stride + row_bytes));
  return emulation::Enqueue(stream.handle(), [=]() -> absl::Status {
    for (size_t row = 0; row < rows; ++row) {
      RETURN_IF_ERROR(Copy(static_cast<std::byte*>(to) + row * to_stride,
                           static_cast<const std::byte*>(from) + row * from_stride, row_bytes));
    }
    return absl::OkStatus();
  });
}

absl::Status FillZeroAsync(void* device, size_t bytes, const Stream& stream) {
  if (bytes == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckRange(device, bytes));
  return emulation::Enqueue(stream.handle(), [=]() -> absl::Status {
    RETURN_IF_ERROR(CheckRange(device, bytes));
    const emulation::DeviceAccess access;
    std::memset(device, 0, bytes);
    return absl::OkStatus();
  });
}

}  // namespace tug::kernels::cuda
