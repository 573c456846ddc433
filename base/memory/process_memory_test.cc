// SPDX-License-Identifier: Apache-2.0
#include "base/memory/process_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "base/memory/shared_region.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr uint64_t kBlock = uint64_t{64} << 20;
// Allows for the kernel's accounting and the process's other allocations.
constexpr uint64_t kSlack = uint64_t{4} << 20;

TEST(PrivateMemoryBytes, CountsWhatIsTouchedAndHeld) {
  const uint64_t before = PrivateMemoryBytes();
  EXPECT_GT(before, 0u);
  // From the kernel itself: a sanitizer's heap keeps freed memory.
  void* const block =
      mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBlock);
  EXPECT_GE(PrivateMemoryBytes() + kSlack, before + kBlock);
  ASSERT_EQ(munmap(block, kBlock), 0);
  EXPECT_LE(PrivateMemoryBytes(), before + kSlack);
}

#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer keeps private shadow memory for every byte
TEST(PrivateMemoryBytes, LeavesSharedMemoryOut) {
  const uint64_t before = PrivateMemoryBytes();
  const auto region = SharedRegion::Create(kBlock, SharedRegion::Sharing::kReadOnly);
  ASSERT_TRUE(region.ok()) << region.status();
  std::memset((*region)->bytes().data(), 1, kBlock);
  EXPECT_LE(PrivateMemoryBytes(), before + kSlack);
}
#endif

TEST(PeakMemory, KeepsTheLargestSample) {
  PeakMemory peak;
  const uint64_t first = peak.Sample(0);
  EXPECT_GT(first, 0u);
  const uint64_t second = peak.Sample(kBlock);
  EXPECT_GE(second + kSlack, first + kBlock);
  EXPECT_EQ(peak.Sample(0), second);
}

}  // namespace
}  // namespace tug
