// SPDX-License-Identifier: Apache-2.0
#include "server/pushes/push_admission.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tug {
namespace {

constexpr uint64_t kElements = 1024;
constexpr uint64_t kBytes = kElements * sizeof(float);
constexpr uint32_t kSegments = 3;
constexpr uint32_t kVirtualWorkers = 8;

// One block, one push per segment, room to park one node.
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
            .parking_bytes = kBytes, .max_deferred = 100, .repeat_after = absl::Seconds(1)},
        *table_, states_, std::vector<uint32_t>{0, 1, 2});
  }

  static PushKey Key(uint32_t segment, uint32_t virtual_worker) {
    return {.first_segment = segment,
            .segment_count = 1,
            .virtual_worker = virtual_worker,
            .virtual_worker_count = 1};
  }
  // Stores or defers the push. Returns whether it was stored.
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
  // Returns whether the push is requested at once.
  bool Announce(uint32_t segment, uint32_t virtual_worker) {
    std::vector<PushKey> wanted;
    return admission_->Announce(Key(segment, virtual_worker), now_, wanted);
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
  EXPECT_TRUE(Offer(1, 0));  // the node that is always available
  EXPECT_TRUE(Offer(1, 2));  // parked
  EXPECT_EQ(admission_->parked_bytes(), kBytes);
  EXPECT_FALSE(Offer(1, 4));
  EXPECT_TRUE(Offer(2, 4));
  EXPECT_FALSE(Offer(2, 6));
  EXPECT_TRUE(Offer(1, 4, /*own=*/false));  // costs nothing in its sender's memory
  EXPECT_TRUE(Offer(1, 3));                 // merges with its sibling
}

TEST_F(PushAdmissionTest, StoresWhatTheExemptSegmentNeedsNextHoweverFull) {
  EXPECT_TRUE(Offer(1, 0));
  EXPECT_TRUE(Offer(1, 2));
  EXPECT_TRUE(Offer(0, 6));
  EXPECT_FALSE(Offer(0, 4));  // exempt segment, but not its first missing virtual worker
  EXPECT_TRUE(Offer(0, 0));
  EXPECT_EQ(admission_->parked_bytes(), 2 * kBytes);
  EXPECT_FALSE(Offer(0, 4));
  EXPECT_TRUE(Offer(0, 1));
  EXPECT_TRUE(Offer(0, 2));
}

TEST_F(PushAdmissionTest, AsksOnceWhenASiblingHasComeAndAgainOnATick) {
  EXPECT_TRUE(Offer(1, 0));
  EXPECT_TRUE(Offer(1, 2));
  EXPECT_TRUE(Offer(2, 0));
  EXPECT_FALSE(Offer(2, 5));
  EXPECT_EQ(Wanted(), Keys{});
  EXPECT_TRUE(Offer(2, 4, /*own=*/false));
  EXPECT_EQ(Wanted(), Keys{});  // it would still add a second own node
  EXPECT_TRUE(Offer(1, 1));
  EXPECT_EQ(Wanted(), Keys{});
  EXPECT_TRUE(Offer(1, 3));  // merges twice: nothing is parked now
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
  EXPECT_EQ(Wanted().size(), 1u);  // one of the two
  EXPECT_FALSE(Offer(1, 6));       // a newcomer does not take the reserved room
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

TEST_F(PushAdmissionTest, AsksForWhatIsAnnouncedAtOnceWhereItHasAPlace) {
  EXPECT_TRUE(Announce(1, 0));   // the node that is always available
  EXPECT_TRUE(Announce(1, 2));   // parked
  EXPECT_FALSE(Announce(1, 4));  // no more room
  EXPECT_FALSE(Offer(1, 6));     // nor for a push that arrives unannounced
  EXPECT_TRUE(Offer(2, 0));
  EXPECT_FALSE(Offer(2, 2));
  EXPECT_EQ(admission_->parked_bytes(), 0u);
  EXPECT_TRUE(Offer(1, 2));
  EXPECT_TRUE(Offer(1, 0));
  EXPECT_EQ(admission_->parked_bytes(), kBytes);
  EXPECT_TRUE(Offer(1, 3));
  EXPECT_EQ(Wanted(), Keys{});
  EXPECT_TRUE(Announce(1, 1));  // merges with a waiting node
  EXPECT_TRUE(Offer(1, 1));
  EXPECT_EQ(Wanted().size(), 1u);
}

TEST_F(PushAdmissionTest, KeepsTheFirstNodeOfASegmentForWhatItHasAskedFor) {
  EXPECT_TRUE(Offer(1, 0));
  EXPECT_TRUE(Offer(1, 2));     // the parking is full
  EXPECT_TRUE(Announce(2, 4));  // uses none of it
  EXPECT_FALSE(Offer(2, 6));    // this would, once that one has arrived
  EXPECT_FALSE(Announce(2, 0));
  EXPECT_TRUE(Offer(2, 4));
  EXPECT_TRUE(Announce(2, 5));
}

TEST_F(PushAdmissionTest, AnAnnouncementThatIsRepeatedIsAskedForAgainAndCountsOnce) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Announce(1, 0));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Announce(1, 2));
  EXPECT_EQ(admission_->deferred(), 2u);
  admission_->ForgetAll();
  EXPECT_EQ(admission_->deferred(), 0u);
  EXPECT_TRUE(Announce(2, 0) && Announce(2, 2)) << "its room is free again";
}

// Workers with one virtual worker each, and a lane with hardly any room. Each worker has memory for
// `gradients_` gradients: it computes the next one, block by block from the last, once an older one
// has been received.
class WaitingWorkers {
 public:
  static constexpr uint32_t kBlocks = 5;
  static constexpr uint32_t kPartitions = 2;  // per block, one segment each

  WaitingWorkers(uint32_t seed)
      : random_(seed),
        virtual_workers_(1 + random_() % 9),
        gradients_(1 + random_() % 3),
        parking_bytes_(random_() % 4 * kBytes) {
    BlockTable blocks;
    for (uint32_t b = 0; b < kBlocks; ++b) {
      blocks.add_blocks()->add_tensors()->add_shape(kPartitions * kElements);
    }
    table_ = *SegmentTable::Create(blocks, kElements);
    std::vector<uint32_t> owned;
    for (uint32_t id = 0; id < table_->size(); ++id) {
      owned.push_back(id);
      states_.push_back(std::make_unique<SegmentState>(0, virtual_workers_, kElements, pool_));
    }
    admission_.emplace(PushAdmission::Options{.parking_bytes = parking_bytes_,
                                              .max_deferred = 1000,
                                              .repeat_after = absl::Seconds(1)},
                       *table_, states_, owned);
    made_.assign(virtual_workers_, 0);
    received_.assign(virtual_workers_, 0);
  }

  // Executes all possible events, in random order, until there are none.
  void Run() {
    while (true) {
      std::vector<uint32_t> able;
      for (uint32_t vw = 0; vw < virtual_workers_; ++vw) {
        const uint32_t unreceived = made_[vw] * kPartitions - received_[vw];
        const bool free = unreceived == 0 || (unreceived - 1) / kPartitions + 1 < gradients_;
        if (made_[vw] < kBlocks && free) able.push_back(vw);
      }
      if (able.empty() && sent_.empty()) break;
      const uint64_t pick = random_() % (able.size() + sent_.size());
      if (pick < able.size()) {
        MakeGradient(able[pick]);
      } else {
        Deliver(pick - able.size());
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    for (uint32_t id = 0; id < table_->size(); ++id) {
      ASSERT_TRUE(states_[id]->sum.complete()) << "stands still";
    }
    EXPECT_EQ(admission_->deferred(), 0u);
    EXPECT_EQ(admission_->parked_bytes(), 0u);
  }
  uint64_t deferred() const { return deferred_; }

 private:
  struct Sent {
    PushKey key;
    bool announced = false;  // header only
    bool wanted = false;
  };

  void MakeGradient(uint32_t virtual_worker) {
    const uint32_t block = kBlocks - 1 - made_[virtual_worker]++;
    for (uint32_t segment = 0; segment < kPartitions; ++segment) {
      sent_.push_back({.key = {.block = block,
                               .first_segment = segment,
                               .segment_count = 1,
                               .virtual_worker = virtual_worker,
                               .virtual_worker_count = 1},
                       .announced = random_() % 2 == 0});
    }
  }
  void Deliver(uint64_t index) {
    const Sent sent = sent_[index];
    sent_.erase(sent_.begin() + static_cast<int64_t>(index));
    std::vector<PushKey> wanted;
    if (sent.announced) {
      deferred_ += admission_->Announce(sent.key, now_, wanted) ? 0 : 1;
    } else if (admission_->Admits(sent.key, /*own=*/true)) {
      Store(sent.key);
    } else {
      ASSERT_FALSE(sent.wanted) << "sent twice for nothing";
      ++deferred_;
      admission_->Defer(sent.key, /*own=*/true);
    }
    admission_->TakeWanted(now_, wanted);
    for (const PushKey& key : wanted) sent_.push_back({.key = key, .wanted = true});
  }
  void Store(const PushKey& key) {
    admission_->Forget(key);
    const uint32_t id = table_->id(key.block, key.first_segment);
    const auto data = std::make_shared<AlignedBuffer>(kBytes);
    states_[id]->sum.Add(
        key.virtual_worker, 1,
        {.payload = Lease(data, std::span<const std::byte>(data->data(), kBytes))});
    admission_->Changed(id);
    ++received_[key.virtual_worker];
    const uint64_t levels = std::bit_width(virtual_workers_ - 1);
    ASSERT_LE(admission_->parked_bytes(), parking_bytes_ + (levels + 1) * kBytes);
  }

  std::mt19937 random_;
  const uint32_t virtual_workers_;
  const uint32_t gradients_;
  const uint64_t parking_bytes_;
  const absl::Time now_ = absl::UnixEpoch();
  std::optional<SegmentTable> table_;
  BufferPool pool_;
  SegmentStates states_;
  std::optional<PushAdmission> admission_;
  std::vector<uint32_t> made_;      // by virtual worker: blocks
  std::vector<uint32_t> received_;  // by virtual worker: partitions
  std::vector<Sent> sent_;
  uint64_t deferred_ = 0;
};

TEST(PushAdmissionOfWaitingWorkers, NeverStandsStillAndTakesAllThatItAsksFor) {
  uint64_t deferred = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WaitingWorkers workers(seed);
    workers.Run();
    if (testing::Test::HasFailure()) return;
    deferred += workers.deferred();
  }
  EXPECT_GT(deferred, 1000u);
}

}  // namespace
}  // namespace tug
