// SPDX-License-Identifier: Apache-2.0
#include "exchange/c_api/push_memory.h"

#include <thread>

#include "gtest/gtest.h"

namespace tug {
namespace {

class PushMemoryTest : public ::testing::Test {
 protected:
  PushMemoryTest() {
    auto* bytes =
        static_cast<std::byte*>(memory_->Keep(std::make_shared<AlignedBuffer>(kSizeBytes)));
    buffer_ = {bytes, kSizeBytes};
  }
  static constexpr size_t kSizeBytes = 256;
  const std::shared_ptr<PushMemory> memory_ = std::make_shared<PushMemory>();
  std::span<const std::byte> buffer_;
};

TEST_F(PushMemoryTest, KnowsItsOwnAlignedBytes) {
  EXPECT_TRUE(memory_->Holds(buffer_));
  EXPECT_TRUE(memory_->Holds(buffer_.subspan(64, 192)));
  EXPECT_FALSE(memory_->Holds(buffer_.subspan(4, 64))) << "not aligned";
  EXPECT_FALSE(memory_->Holds({buffer_.data() + 64, kSizeBytes})) << "beyond its end";
  const AlignedBuffer other(kSizeBytes);
  EXPECT_FALSE(memory_->Holds({other.data(), kSizeBytes}));
}

TEST_F(PushMemoryTest, WaitsForTheLastReader) {
  Lease lease = memory_->LeaseOut(buffer_, 7);
  Lease slice = lease.Slice(64, 64);
  EXPECT_EQ(slice.bytes().data(), buffer_.data() + 64);
  lease = Lease();
  std::thread reader([slice = std::move(slice)]() mutable { slice = Lease(); });
  memory_->AwaitUnread(8);
  memory_->AwaitUnread(7);
  reader.join();
}

TEST_F(PushMemoryTest, AnEndEndsTheWait) {
  const Lease lease = memory_->LeaseOut(buffer_, 7);
  std::thread waiting([&] { memory_->AwaitUnread(7); });
  memory_->End();
  waiting.join();
}

TEST(PushMemory, ALeaseOutlivesIt) {
  auto memory = std::make_shared<PushMemory>();
  auto* bytes = static_cast<std::byte*>(memory->Keep(std::make_shared<AlignedBuffer>(64)));
  bytes[0] = std::byte{3};
  const Lease lease = memory->LeaseOut({bytes, 64}, 1);
  memory.reset();
  EXPECT_EQ(lease.bytes()[0], std::byte{3});
}

}  // namespace
}  // namespace tug
