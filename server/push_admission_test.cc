#include "server/push_admission.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace tug {
namespace {

constexpr uint64_t kElements = 1024;
constexpr uint64_t kBytes = kElements * sizeof(float);
constexpr uint32_t kSegments = 3;
constexpr uint32_t kVirtualWorkers = 8;

// One block, a push for each segment, room to park one node.
class PushAdmissionTest : public testing::Test {
 protected:
  PushAdmissionTest() {
    BlockTable blocks;
    blocks.add_blocks()->add_tensors()->add_shape(kSegments * kElements);
    table_ = *SegmentTable::Create(blocks, kElements);
    for (uint32_t id = 0; id < kSegments; ++id) {
      states_.push_back(std::make_unique<SegmentState>(0, kVirtualWorkers, kElements, pool_));
    }
    admission_.emplace(
        PushAdmission::Options{
            .parking_bytes = kBytes, .most_deferred = 100, .repeat_after = absl::Seconds(1)},
        *table_, states_, std::vector<uint32_t>{0, 1, 2});
  }

  static PushKey Key(uint32_t segment, uint32_t virtual_worker) {
    return {.first_segment = segment,
            .segment_count = 1,
            .virtual_worker = virtual_worker,
            .virtual_worker_count = 1};
  }
  // Stores or defers. Returns whether it was stored.
  bool Offer(uint32_t segment, uint32_t virtual_worker, bool own = true) {
    const PushKey key = Key(segment, virtual_worker);
    if (!admission_->Admits(key, own)) {
      admission_->Defer(key, own);
      return false;
    }
    admission_->Forget(key);
    const auto data = std::make_shared<AlignedBuffer>(kBytes);
    states_[segment]->sum.Add(
        virtual_worker, 1,
        {.payload = Lease(data, std::span<const std::byte>(data->data(), kBytes)),
         .writable = own});
    admission_->Changed(segment);
    return true;
  }
  std::vector<PushKey> Wanted() {
    std::vector<PushKey> wanted;
    admission_->TakeWanted(now_, wanted);
    return wanted;
  }
  std::vector<PushKey> WantedOnTick() {
    std::vector<PushKey> wanted;
    admission_->OnTick(now_, wanted);
    return wanted;
  }

  absl::Time now_ = absl::UnixEpoch();
  std::optional<SegmentTable> table_;
  BufferPool pool_;
  SegmentStates states_;
  std::optional<PushAdmission> admission_;
};

using Keys = std::vector<PushKey>;

TEST_F(PushAdmissionTest, ParksASecondNodeAndNoMore) {
  EXPECT_TRUE(Offer(1, 0));  // the one that is always there
  EXPECT_TRUE(Offer(1, 2));  // parked
  EXPECT_EQ(admission_->parked_bytes(), kBytes);
  EXPECT_FALSE(Offer(1, 4));
  EXPECT_FALSE(Offer(2, 4) && Offer(2, 6));
  EXPECT_TRUE(Offer(1, 4, /*own=*/false));  // costs nothing where it is
  EXPECT_TRUE(Offer(1, 3));                 // joins its sibling
}

TEST_F(PushAdmissionTest, StoresWhatTheExemptSegmentNeedsNextHoweverFull) {
  EXPECT_TRUE(Offer(1, 0));
  EXPECT_TRUE(Offer(1, 2));
  EXPECT_TRUE(Offer(0, 6));
  EXPECT_FALSE(Offer(0, 4));  // of the exempt segment, but not its first missing virtual worker
  EXPECT_TRUE(Offer(0, 0));
  EXPECT_EQ(admission_->parked_bytes(), 2 * kBytes);
  EXPECT_FALSE(Offer(0, 4));
  EXPECT_TRUE(Offer(0, 1));
  EXPECT_TRUE(Offer(0, 2));
}

TEST_F(PushAdmissionTest, AsksOnceWhenASiblingHasComeAndAgainOnATick) {
  EXPECT_TRUE(Offer(1, 0));
  EXPECT_TRUE(Offer(1, 2));
  EXPECT_FALSE(Offer(2, 0) && Offer(2, 5));
  EXPECT_EQ(Wanted(), Keys{});
  EXPECT_TRUE(Offer(2, 4, /*own=*/false));
  EXPECT_EQ(Wanted(), Keys{});  // two in our memory even so
  EXPECT_TRUE(Offer(1, 1));
  EXPECT_EQ(Wanted(), Keys{});
  EXPECT_TRUE(Offer(1, 3));  // joins twice: nothing is parked now
  EXPECT_EQ(Wanted(), Keys{Key(2, 5)});
  EXPECT_EQ(Wanted(), Keys{});
  EXPECT_EQ(WantedOnTick(), Keys{});
  now_ += absl::Seconds(1);
  EXPECT_EQ(WantedOnTick(), Keys{Key(2, 5)});
  EXPECT_TRUE(Offer(2, 5));
  EXPECT_EQ(admission_->deferred(), 0u);
}

TEST_F(PushAdmissionTest, KeepsTheRoomOfWhatItHasAskedFor) {
  EXPECT_TRUE(Offer(1, 0));
  EXPECT_TRUE(Offer(1, 2));
  EXPECT_TRUE(Offer(2, 0));
  EXPECT_FALSE(Offer(2, 2));
  EXPECT_FALSE(Offer(2, 4));
  EXPECT_TRUE(Offer(1, 1));
  EXPECT_TRUE(Offer(1, 3));        // room for one
  EXPECT_EQ(Wanted().size(), 1u);  // of the two
  EXPECT_FALSE(Offer(1, 6));       // a newcomer does not take it
  EXPECT_TRUE(Offer(2, 2));
  EXPECT_EQ(admission_->deferred(), 2u);
}

TEST_F(PushAdmissionTest, ForgetsWhatHasBeenCommittedByAnotherWay) {
  EXPECT_TRUE(Offer(1, 0));
  EXPECT_TRUE(Offer(1, 2));
  EXPECT_FALSE(Offer(1, 4));
  states_[1]->sum.Clear();
  states_[1]->version = 1;
  admission_->Changed(1);
  EXPECT_EQ(Wanted(), Keys{});
  EXPECT_EQ(admission_->deferred(), 0u);
  EXPECT_EQ(admission_->parked_bytes(), 0u);
}

}  // namespace
}  // namespace tug
