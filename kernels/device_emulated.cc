// In place of device_cuda.cc in tests: memory is the host's, and what is queued is done at once,
// but for copies that are held (kernels/cuda_emulation_copies.h).
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/cuda_emulation_copies.h"
#include "kernels/cuda_emulation_memory.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{4} << 30;
constexpr size_t kSharedBytesPerBlock = size_t{163} << 10;

bool holds_copies = false;

// What a stream holds, in its order.
struct Held {
  std::deque<std::function<void()>> copies;
  uint64_t queued = 0;
  uint64_t done = 0;

  void DoUntil(uint64_t until) {
    for (; done < until; ++done) {
      copies.front()();
      copies.pop_front();
    }
  }
};

struct EmulatedStream {
  std::shared_ptr<Held> held = std::make_shared<Held>();
};

struct EmulatedEvent {
  bool timed = false;
  absl::Time recorded = absl::InfinitePast();
  std::shared_ptr<Held> held;  // of the stream
  uint64_t queued = 0;         // there, before it

  void Await() const {
    if (held != nullptr) held->DoUntil(queued);
  }
};

EmulatedEvent& Of(void* event) { return *static_cast<EmulatedEvent*>(event); }
Held& HeldOf(const Stream& stream) { return *static_cast<EmulatedStream*>(stream.handle())->held; }

absl::Status CheckRange(const void* device, size_t bytes) {
  if (bytes == 0 || emulation::IsDeviceRange(device, bytes)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(bytes, " bytes that do not all lie in device memory"));
}

absl::StatusOr<void*> Allocate(size_t bytes, void* (*allocate)(size_t)) {
  void* const data = bytes <= kMemoryBytes ? allocate(bytes) : nullptr;
  if (data != nullptr) return data;
  return absl::ResourceExhaustedError(
      absl::StrCat(bytes, " bytes wanted; an emulated GPU has ", kMemoryBytes));
}

void Copy(void* to, const void* from, size_t bytes) {
  const emulation::DeviceAccess access;
  if (bytes > 0) std::memcpy(to, from, bytes);
}

// Between device and host.
void CopyOn(const Stream& stream, void* to, const void* from, size_t bytes, const void* host) {
  Held& held = HeldOf(stream);
  const bool hold = holds_copies && !emulation::IsDeviceRange(host, bytes);
  if (!hold && held.copies.empty()) return Copy(to, from, bytes);
  held.copies.emplace_back([=] { Copy(to, from, bytes); });
  ++held.queued;
}

// Host memory that is registered, in whole pages. Thread-safe.
class PageRanges {
 public:
  // Whether it is added: not what is off a page's boundary, nor pages that are there already.
  bool Add(uintptr_t begin, size_t size_bytes) {
    if (begin == 0 || begin % kPageBytes != 0 || size_bytes == 0) return false;
    const uintptr_t end = (begin + size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    absl::MutexLock lock(&mutex_);
    const auto behind = end_.lower_bound(end);
    if (behind != end_.begin() && std::prev(behind)->second > begin) return false;
    end_.emplace(begin, end);
    return true;
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
  const auto& held = static_cast<EmulatedStream*>(stream.handle())->held;
  EmulatedEvent& event = Of(handle_.get());
  event = {.timed = event.timed, .recorded = absl::Now(), .held = held, .queued = held->queued};
  return absl::OkStatus();
}
absl::Status Event::Synchronize() const {
  Of(handle_.get()).Await();
  return absl::OkStatus();
}
absl::StatusOr<bool> Event::IsDone() const {
  const EmulatedEvent& event = Of(handle_.get());
  return event.held == nullptr || event.held->done >= event.queued;
}

absl::StatusOr<absl::Duration> TimeBetween(const Event& begin, const Event& end) {
  if (!Of(begin.handle_.get()).timed || !Of(end.handle_.get()).timed) {
    return absl::InternalError("time between events that are not made for it");
  }
  const absl::Time from = Of(begin.handle_.get()).recorded;
  const absl::Time to = Of(end.handle_.get()).recorded;
  if (from == absl::InfinitePast() || to == absl::InfinitePast()) {
    return absl::InternalError("time between events that are not recorded");
  }
  return to - from;
}

absl::StatusOr<Stream> Stream::Create() { return Stream(new EmulatedStream); }
void Stream::Destroy::operator()(void* stream) const {
  delete static_cast<EmulatedStream*>(stream);
}
absl::Status Stream::Synchronize() const {
  Held& held = HeldOf(*this);
  held.DoUntil(held.queued);
  return absl::OkStatus();
}
// In the order of what the stream holds; at once where it holds nothing, as a kernel may be next.
absl::Status Stream::WaitFor(const Event& event) const {
  const EmulatedEvent awaited = Of(event.handle_.get());
  Held& held = HeldOf(*this);
  if (held.copies.empty()) {
    awaited.Await();
    return absl::OkStatus();
  }
  held.copies.emplace_back([awaited] { awaited.Await(); });
  ++held.queued;
  return absl::OkStatus();
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Create(size_t size_bytes) {
  ASSIGN_OR_RETURN(void* const data, Allocate(size_bytes, emulation::AllocateDeviceBytes));
  return DeviceBuffer(data, size_bytes);
}
void DeviceBuffer::Free::operator()(void* data) const { emulation::FreeDeviceBytes(data); }

absl::StatusOr<ScratchBuffer> ScratchBuffer::Create(size_t size_bytes, const Stream& stream) {
  ASSIGN_OR_RETURN(void* const data, Allocate(size_bytes, emulation::AllocateDeviceBytes));
  return ScratchBuffer(data, stream.handle());
}
void ScratchBuffer::Free::operator()(void* data) const { emulation::FreeDeviceBytes(data); }

// Device memory too: kernels may use it.
absl::StatusOr<PinnedBuffer> PinnedBuffer::Create(size_t size_bytes) {
  ASSIGN_OR_RETURN(void* const data, Allocate(size_bytes, emulation::AllocatePinnedBytes));
  return PinnedBuffer(data, size_bytes);
}
void PinnedBuffer::Free::operator()(void* data) const { emulation::FreeDeviceBytes(data); }

absl::StatusOr<RegisteredMemory> RegisteredMemory::Create(void* host, size_t size_bytes) {
  if (!RegisteredPages().Add(reinterpret_cast<uintptr_t>(host), size_bytes)) {
    return absl::InternalError(absl::StrCat(
        size_bytes, " bytes that are not at the boundary of a page, or registered already"));
  }
  return RegisteredMemory(host, /*device=*/0);
}
void RegisteredMemory::Unregister::operator()(void* host) const {
  RegisteredPages().Remove(reinterpret_cast<uintptr_t>(host));
}

absl::Status CopyToDeviceAsync(void* device, const void* host, size_t bytes, const Stream& stream) {
  RETURN_IF_ERROR(CheckRange(device, bytes));
  CopyOn(stream, device, host, bytes, host);
  return absl::OkStatus();
}

absl::Status CopyToHostAsync(void* host, const void* device, size_t bytes, const Stream& stream) {
  RETURN_IF_ERROR(CheckRange(device, bytes));
  CopyOn(stream, host, device, bytes, host);
  return absl::OkStatus();
}

absl::Status CopyOnDeviceAsync(void* to, const void* from, size_t bytes, const Stream&) {
  RETURN_IF_ERROR(CheckRange(to, bytes));
  RETURN_IF_ERROR(CheckRange(from, bytes));
  Copy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status CopyRowsOnDeviceAsync(void* to, size_t to_stride, const void* from, size_t from_stride,
                                   size_t row_bytes, size_t rows, const Stream& stream) {
  for (size_t row = 0; row < rows; ++row) {
    RETURN_IF_ERROR(CopyOnDeviceAsync(static_cast<std::byte*>(to) + row * to_stride,
                                      static_cast<const std::byte*>(from) + row * from_stride,
                                      row_bytes, stream));
  }
  return absl::OkStatus();
}

absl::Status FillZeroAsync(void* device, size_t bytes, const Stream&) {
  RETURN_IF_ERROR(CheckRange(device, bytes));
  const emulation::DeviceAccess access;
  if (bytes > 0) std::memset(device, 0, bytes);
  return absl::OkStatus();
}

}  // namespace tug::kernels::cuda

namespace tug::kernels::emulation {

void HoldCopies(bool hold) { cuda::holds_copies = hold; }

}  // namespace tug::kernels::emulation
