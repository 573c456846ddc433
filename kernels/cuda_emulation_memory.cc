#include "kernels/cuda_emulation_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"

namespace tug::kernels::emulation {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kGuardBytes = kAlignment;  // before it; 64 and up to the boundary behind it
constexpr int kUnwritten = 0xFF;
constexpr int kGuard = 0xA5;

struct Allocations {
  absl::Mutex mutex;
  std::map<uintptr_t, size_t> bytes_of ABSL_GUARDED_BY(mutex);
};

// Lives as long as the process: a buffer may be freed by a destructor of static storage.
Allocations& All() {
  static auto* const all = new Allocations;
  return *all;
}

size_t AllocatedBytes(size_t bytes) {
  return (kGuardBytes + bytes + 64 + kAlignment - 1) / kAlignment * kAlignment;
}

bool IsGuard(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == std::byte{kGuard}; });
}

}  // namespace

void* AllocateDeviceBytes(size_t bytes) {
  const size_t allocated = AllocatedBytes(bytes);
  auto* const begin = static_cast<std::byte*>(std::aligned_alloc(kAlignment, allocated));
  if (begin == nullptr) return nullptr;
  std::byte* const memory = begin + kGuardBytes;
  std::memset(begin, kGuard, kGuardBytes);
  std::memset(memory, kUnwritten, bytes);
  std::memset(memory + bytes, kGuard, allocated - kGuardBytes - bytes);
  Allocations& all = All();
  absl::MutexLock lock(&all.mutex);
  all.bytes_of[reinterpret_cast<uintptr_t>(memory)] = bytes;
  return memory;
}

void FreeDeviceBytes(void* memory) {
  if (memory == nullptr) return;
  Allocations& all = All();
  size_t bytes = 0;
  {
    absl::MutexLock lock(&all.mutex);
    const auto found = all.bytes_of.find(reinterpret_cast<uintptr_t>(memory));
    TUG_CHECK(found != all.bytes_of.end()) << "no device memory, or freed before";
    bytes = found->second;
    all.bytes_of.erase(found);
  }
  auto* const begin = static_cast<std::byte*>(memory) - kGuardBytes;
  TUG_CHECK(IsGuard(begin, begin + kGuardBytes))
      << "written before the beginning of " << bytes << " bytes of device memory";
  TUG_CHECK(IsGuard(begin + kGuardBytes + bytes, begin + AllocatedBytes(bytes)))
      << "written behind the end of " << bytes << " bytes of device memory";
  std::free(begin);
}

bool IsDeviceMemory(const void* p) { return IsDeviceRange(p, 0); }

bool IsDeviceRange(const void* p, size_t bytes) {
  Allocations& all = All();
  absl::MutexLock lock(&all.mutex);
  const auto at = reinterpret_cast<uintptr_t>(p);
  auto after = all.bytes_of.upper_bound(at);
  if (after == all.bytes_of.begin()) return false;
  const auto& [begin, size] = *--after;
  return at - begin <= size && bytes <= size - (at - begin);
}

}  // namespace tug::kernels::emulation
