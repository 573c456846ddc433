// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "base/cpu/spin.h"
#include "base/memory/lease.h"
#include "base/status_macros.h"
#include "kernels/sum.h"
#include "limits/huge_array.h"
#include "limits/raw_limits.h"
#include "limits/stream_loops.h"

namespace tug {
namespace {

constexpr uint64_t kSlots = 8;
constexpr uint64_t kPage = 4096;
// Minimum size of the writer's source and the reader's sum, so that they stay in caches no more
// than a gradient or a sum would.
constexpr uint64_t kSourceBytes = uint64_t{64} << 20;

struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

absl::StatusOr<std::byte*> MapRing(uint64_t bytes) {
  const int fd = memfd_create("tug-bench", MFD_CLOEXEC);
  const uint64_t size = kPage + kSlots * bytes;
  void* mapped = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(size)) == 0) {
    mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot share ", size, " bytes of memory: ", std::strerror(error)));
  }
  new (mapped) Ring();
  return static_cast<std::byte*>(mapped);
}

void WriteForEver(std::byte* shared, uint64_t bytes) {
  Ring& ring = *reinterpret_cast<Ring*>(shared);
  const AlignedBuffer source(std::max(bytes, kSourceBytes));
  for (uint64_t n = 0;; ++n) {
    while (n - ring.read.load(std::memory_order_acquire) >= kSlots) CpuRelax();
    std::memcpy(shared + kPage + n % kSlots * bytes,
                source.data() + n * bytes % source.size_bytes(), bytes);
    ring.written.store(n + 1, std::memory_order_release);
  }
}

void AddForEver(BenchChild& child, std::byte* shared, uint64_t bytes) {
  Ring& ring = *reinterpret_cast<Ring*>(shared);
  AlignedBuffer sum(std::max(bytes, kSourceBytes));
  const auto floats = static_cast<int64_t>(bytes / sizeof(float));
  for (uint64_t n = 0;; ++n) {
    while (ring.written.load(std::memory_order_acquire) == n) CpuRelax();
    kernels::AddAndCheck(reinterpret_cast<const float*>(shared + kPage + n % kSlots * bytes),
                         reinterpret_cast<float*>(sum.data() + n * bytes % sum.size_bytes()),
                         floats);
    ring.read.store(n + 1, std::memory_order_release);
    child.tally().Count(bytes, 0, 1);
  }
}

}  // namespace

absl::StatusOr<BenchWindow> OneCopySharedMemory(const RawSetting& setting) {
  const uint64_t bytes = setting.bytes;
  ASSIGN_OR_RETURN(std::byte* const shared, MapRing(bytes));
  BenchProcesses processes;
  absl::Status started = processes.Start("shared-memory reader", "", [=](BenchChild& child) {
    AddForEver(child, shared, bytes);
    return absl::OkStatus();
  });
  if (started.ok()) {
    started = processes.Start("shared-memory writer", "", [=](BenchChild&) {
      WriteForEver(shared, bytes);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<BenchWindow> window =
      started.ok() ? processes.Measure(setting.window) : absl::StatusOr<BenchWindow>(started);
  munmap(shared, kPage + kSlots * bytes);
  return window;
}

absl::StatusOr<BenchWindow> MemoryCopy(const RawSetting& setting, uint64_t array_bytes) {
  BenchProcesses processes;
  RETURN_IF_ERROR(processes.Start("memcpy", "", [=](BenchChild& child) -> absl::Status {
    const HugeArray<std::byte> from(array_bytes);
    const HugeArray<std::byte> to(array_bytes);
    for (uint64_t at = 0;; at = (at + setting.bytes) % array_bytes) {
      std::memcpy(to.data() + at, from.data() + at, setting.bytes);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the copy from being removed
      child.tally().Count(setting.bytes, 0, 1);
    }
  }));
  return processes.Measure(setting.window);
}

absl::StatusOr<BenchWindow> StreamAddition(const RawSetting& setting, uint64_t array_bytes) {
  BenchProcesses processes;
  RETURN_IF_ERROR(processes.Start("STREAM a += b", "", [=](BenchChild& child) -> absl::Status {
    const HugeArray<float> a(array_bytes / sizeof(float));
    const HugeArray<float> b(array_bytes / sizeof(float));
    const uint64_t step = setting.bytes / sizeof(float);
    for (uint64_t at = 0;; at = (at + step) % a.span().size()) {
      StreamAdd(a.data() + at, b.data() + at, static_cast<int64_t>(step));
      child.tally().Count(3 * setting.bytes, 0, 1);
    }
  }));
  return processes.Measure(setting.window);
}

}  // namespace tug
