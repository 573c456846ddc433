// SPDX-License-Identifier: Apache-2.0
#include "base/memory/send_buffers.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tug {
namespace {

constexpr size_t kPage = 4096;

TEST(SendBuffers, UsesABufferAgainOnceNobodyReadsIt) {
  SendBuffers buffers(100 * kPage, {});
  const std::byte* first = nullptr;
  for (int i = 0; i < 100; ++i) {
    const SendBuffers::Payload payload = buffers.Take(kPage - 8);
    EXPECT_EQ(payload.bytes.size(), kPage - 8);
    EXPECT_EQ(payload.lease.bytes().data(), payload.bytes.data());
    if (first == nullptr) first = payload.bytes.data();
    EXPECT_EQ(payload.bytes.data(), first);
  }
  EXPECT_EQ(buffers.kept_bytes(), kPage);
}

TEST(SendBuffers, NeverHandsOutWhatIsStillRead) {
  SendBuffers buffers(4 * kPage, {});
  std::vector<Lease> read;
  std::set<const std::byte*> places;
  for (int i = 0; i < 100; ++i) {
    SendBuffers::Payload payload = buffers.Take(kPage);
    EXPECT_TRUE(places.insert(payload.bytes.data()).second);
    read.push_back(payload.lease);
  }
  EXPECT_EQ(buffers.kept_bytes(), 4 * kPage);  // the others are freed with their leases
}

TEST(SendBuffers, KeepsUpWithAWindowOfReaders) {
  SendBuffers buffers(100 * kPage, {});
  std::vector<Lease> window(16);
  for (size_t i = 0; i < 10000; ++i) window[i % window.size()] = buffers.Take(kPage).lease;
  EXPECT_LE(buffers.kept_bytes(), 32 * kPage);
}

TEST(SendBuffers, ReplacesABufferThatIsTooSmall) {
  SendBuffers buffers(100 * kPage, {});
  buffers.Take(10);
  EXPECT_EQ(buffers.Take(3 * kPage).bytes.size(), 3 * kPage);
  EXPECT_EQ(buffers.kept_bytes(), 3 * kPage);
}

TEST(SendBuffers, DropsWhatItKeepsBeyondALowerLimit) {
  SendBuffers buffers(100 * kPage, {});
  {
    std::vector<Lease> window;
    for (int i = 0; i < 16; ++i) window.push_back(buffers.Take(kPage).lease);
    EXPECT_EQ(buffers.kept_bytes(), 16 * kPage);
    buffers.set_keep_bytes(3 * kPage);
    EXPECT_EQ(buffers.kept_bytes(), 3 * kPage);
    buffers.Take(kPage);
  }
  for (int i = 0; i < 20; ++i) buffers.Take(kPage);
  EXPECT_EQ(buffers.kept_bytes(), 3 * kPage);
  buffers.set_keep_bytes(0);
  EXPECT_EQ(buffers.kept_bytes(), 0u);
  EXPECT_EQ(buffers.Take(kPage).bytes.size(), kPage);
}

TEST(SendBuffers, AsksForItsMemoryWhereItIsTold) {
  size_t asked = 0;
  SendBuffers buffers(100 * kPage, [&](size_t size_bytes) {
    asked += size_bytes;
    return std::make_shared<AlignedBuffer>(size_bytes);
  });
  buffers.Take(100);
  EXPECT_EQ(asked, kPage);
}

}  // namespace
}  // namespace tug
