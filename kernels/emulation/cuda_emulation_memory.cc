// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulation/cuda_emulation_memory.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"

namespace tug::kernels::emulation {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kGuardBytes = kAlignment;  // in front; behind: 64, and up to the boundary
constexpr int kGuard = 0xA5;

struct Allocation {
  size_t bytes;
  bool pinned;  // the host and every device may use it
  int device;
};

struct Allocations {
  absl::Mutex mutex;
  std::map<uintptr_t, Allocation> at ABSL_GUARDED_BY(mutex);
  int device_accesses ABSL_GUARDED_BY(mutex) = 0;
};

// Lives as long as the process: destructors of static objects may free buffers.
Allocations& All() {
  static auto* const all = new Allocations;
  return *all;
}

size_t AllocatedBytes(size_t bytes) {
  return (kGuardBytes + bytes + 64 + kAlignment - 1) / kAlignment * kAlignment;
}

#if defined(__SANITIZE_ADDRESS__)
void SetUsable(uintptr_t memory, const Allocation& allocation, bool usable) {
  const void* const begin = reinterpret_cast<const void*>(memory);
  if (usable || allocation.pinned) {
    ASAN_UNPOISON_MEMORY_REGION(begin, allocation.bytes);
  } else {
    ASAN_POISON_MEMORY_REGION(begin, allocation.bytes);
  }
}
#else
void SetUsable(uintptr_t, const Allocation&, bool) {}
#endif

bool IsGuard(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == std::byte{kGuard}; });
}

constexpr int kNoDevice = -1;
constexpr int kAllDevices = -2;
std::atomic<int> fails_allocations = kNoDevice;

int FirstDeviceCount() {
  const char* const said = std::getenv("TUG_EMULATED_GPUS");
  return said != nullptr ? std::atoi(said) : 1;
}

std::atomic<int>& TheDeviceCount() {
  static std::atomic<int> count = FirstDeviceCount();
  return count;
}

thread_local int this_device = 0;

void* Allocate(const Allocation& allocation) {
  const int fails = fails_allocations;
  if (fails == kAllDevices || fails == allocation.device) return nullptr;
  const size_t bytes = allocation.bytes, allocated = AllocatedBytes(bytes);
  auto* const begin = static_cast<std::byte*>(std::aligned_alloc(kAlignment, allocated));
  if (begin == nullptr) return nullptr;
  std::byte* const memory = begin + kGuardBytes;
  std::memset(begin, kGuard, kGuardBytes);
  std::memset(memory, kUnwritten, bytes);
  std::memset(memory + bytes, kGuard, allocated - kGuardBytes - bytes);
  Allocations& all = All();
  absl::MutexLock lock(&all.mutex);
  const auto at = reinterpret_cast<uintptr_t>(memory);
  all.at.emplace(at, allocation);
  SetUsable(at, allocation, all.device_accesses > 0);
  return memory;
}

}  // namespace

void* AllocateDeviceBytes(size_t bytes) {
  return Allocate({.bytes = bytes, .pinned = false, .device = this_device});
}
void* AllocatePinnedBytes(size_t bytes) {
  return Allocate({.bytes = bytes, .pinned = true, .device = this_device});
}

void FailAllocations(bool fail, std::optional<int> device) {
  fails_allocations = fail ? device.value_or(kAllDevices) : kNoDevice;
}

int DeviceCount() { return TheDeviceCount(); }
void SetDeviceCount(int count) { TheDeviceCount() = count; }
int ThisDevice() { return this_device; }
void SetThisDevice(int device) { this_device = device; }

void FreeDeviceBytes(void* memory) {
  if (memory == nullptr) return;
  Allocations& all = All();
  size_t bytes = 0;
  {
    absl::MutexLock lock(&all.mutex);
    const auto found = all.at.find(reinterpret_cast<uintptr_t>(memory));
    TUG_CHECK(found != all.at.end()) << "not device memory, or already freed";
    bytes = found->second.bytes;
    SetUsable(found->first, found->second, true);
    all.at.erase(found);
  }
  auto* const begin = static_cast<std::byte*>(memory) - kGuardBytes;
  TUG_CHECK(IsGuard(begin, begin + kGuardBytes))
      << "written before the beginning of " << bytes << " bytes of device memory";
  TUG_CHECK(IsGuard(begin + kGuardBytes + bytes, begin + AllocatedBytes(bytes)))
      << "written beyond the end of " << bytes << " bytes of device memory";
  std::free(begin);
}

void SetUnwritten(void* memory) {
  Allocations& all = All();
  size_t bytes = 0;
  {
    absl::MutexLock lock(&all.mutex);
    const auto found = all.at.find(reinterpret_cast<uintptr_t>(memory));
    TUG_CHECK(found != all.at.end()) << "not device memory, or already freed";
    bytes = found->second.bytes;
  }
  const DeviceAccess access;
  std::memset(memory, kUnwritten, bytes);
}

DeviceAccess::DeviceAccess() {
  Allocations& all = All();
  absl::MutexLock lock(&all.mutex);
  if (all.device_accesses++ > 0) return;
  for (const auto& [memory, allocation] : all.at) SetUsable(memory, allocation, true);
}

DeviceAccess::~DeviceAccess() {
  Allocations& all = All();
  absl::MutexLock lock(&all.mutex);
  if (--all.device_accesses > 0) return;
  for (const auto& [memory, allocation] : all.at) SetUsable(memory, allocation, false);
}

bool IsDeviceMemory(const void* p) { return IsDeviceRange(p, 0); }

bool IsDeviceRange(const void* p, size_t bytes) {
  Allocations& all = All();
  absl::MutexLock lock(&all.mutex);
  const auto at = reinterpret_cast<uintptr_t>(p);
  auto after = all.at.upper_bound(at);
  if (after == all.at.begin()) return false;
  const auto& [begin, allocation] = *--after;
  const size_t size = allocation.bytes;
  if (!allocation.pinned && allocation.device != this_device) return false;
  return at - begin <= size && bytes <= size - (at - begin);
}

}  // namespace tug::kernels::emulation
