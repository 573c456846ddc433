// SPDX-License-Identifier: Apache-2.0
#include "transport/shm_queue.h"

#include <algorithm>
#include <random>
#include <thread>

#include "gtest/gtest.h"

namespace tug {
namespace {

using Header = std::array<std::byte, kHeaderBytes>;

// Both ends over one region, in one process.
struct Pair {
  Pair() {
    auto created = SharedRegion::Create(sizeof(ShmQueueMemory), SharedRegion::Sharing::kReadWrite);
    EXPECT_TRUE(created.ok()) << created.status();
    region = *created;
    sender = std::make_unique<ShmSender>(region);
    receiver = std::make_shared<ShmReceiver>(region);
  }
  ShmQueueMemory& memory() { return *reinterpret_cast<ShmQueueMemory*>(region->bytes().data()); }

  std::shared_ptr<SharedRegion> region;
  std::unique_ptr<ShmSender> sender;
  std::shared_ptr<ShmReceiver> receiver;
};

Header Numbered(uint64_t n) {
  Header header{};
  std::memcpy(header.data(), &n, sizeof(n));
  return header;
}

uint64_t NumberOf(const ShmReceiver::Taken& taken) {
  uint64_t n;
  std::memcpy(&n, taken.content.header.data(), sizeof(n));
  return n;
}

// A lease, and whether it is held.
struct Watched {
  std::shared_ptr<int> owner = std::make_shared<int>(0);
  Lease lease() const { return Lease(owner, std::span<const std::byte>()); }
  bool held() const { return owner.use_count() > 1; }
};

TEST(ShmQueue, MessagesComeInOrderAndLeasesEndWithTheirRelease) {
  Pair pair;
  Watched a;
  Watched b;
  ASSERT_TRUE(pair.sender->Push(Numbered(1), {1, 2, 3}, a.lease()));
  ASSERT_TRUE(pair.sender->Push(Numbered(2), {4, 5, 6}, b.lease()));
  const auto first = pair.receiver->Take();
  const auto second = pair.receiver->Take();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(pair.receiver->Take().has_value());
  EXPECT_EQ(NumberOf(*first), 1u);
  EXPECT_EQ(first->content.payload.offset, 2u);
  EXPECT_EQ(NumberOf(*second), 2u);

  pair.sender->Collect();
  EXPECT_TRUE(a.held() && b.held());
  pair.receiver->Release(second->slot);
  pair.sender->Collect();
  EXPECT_TRUE(a.held());
  EXPECT_FALSE(b.held());
  pair.receiver->Release(first->slot);
  pair.sender->Collect();
  EXPECT_FALSE(a.held());
  EXPECT_EQ(pair.sender->occupied(), 0u);
}

TEST(ShmQueue, IsFullWhenAllSlotsAreOccupiedUntilOneIsReleased) {
  Pair pair;
  for (uint32_t i = 0; i < kShmSlots; ++i) {
    ASSERT_TRUE(pair.sender->Push(Numbered(i), {}, Lease()));
  }
  EXPECT_FALSE(pair.sender->Push(Numbered(kShmSlots), {}, Lease()));
  const auto taken = pair.receiver->Take();
  pair.sender->WaitForRelease();
  EXPECT_TRUE(pair.receiver->Release(taken->slot)) << "the sender is to be rung";
  EXPECT_TRUE(pair.sender->HasReleased());
  pair.sender->Collect();
  EXPECT_TRUE(pair.sender->Push(Numbered(kShmSlots), {}, Lease()));
  for (uint64_t i = 1; i <= kShmSlots; ++i) {
    const auto next = pair.receiver->Take();
    ASSERT_TRUE(next.has_value());
    ASSERT_EQ(NumberOf(*next), i);
    pair.receiver->Release(next->slot);
  }
}

TEST(ShmQueue, ASleepingReceiverIsRungOnce) {
  Pair pair;
  EXPECT_FALSE(pair.sender->TakeReceiverSleeps());
  pair.receiver->SetSleeping(true);
  EXPECT_TRUE(pair.sender->TakeReceiverSleeps());
  EXPECT_FALSE(pair.sender->TakeReceiverSleeps());
}

TEST(ShmQueue, HostilePeerCannotCauseAccessOutsideQueue) {
  Pair pair;
  Watched held;
  ASSERT_TRUE(pair.sender->Push(Numbered(1), {}, held.lease()));
  const uint32_t seed = 7;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    for (auto& word : pair.memory().released) word.store(random());
    for (auto& word : pair.memory().summary) word.store(random());
    pair.sender->Collect();
    ASSERT_LE(pair.sender->occupied(), 1u) << "seed " << seed;
  }
  // A peer that claims to have taken messages which were not sent.
  ASSERT_TRUE(pair.sender->PushCopy(Numbered(2), {}));
  for (int round = 0; round < 100; ++round) {
    pair.memory().taken.store(static_cast<uint32_t>(random()));
    pair.sender->Collect();
    ASSERT_TRUE(pair.sender->PushCopy(Numbered(3), {}));
    ASSERT_LE(pair.sender->occupied(), 102u) << "seed " << seed;
  }
  // A sender that writes garbage: every slot and payload taken must still be in range.
  for (uint32_t i = 0; i < kShmSlots; ++i) {
    const auto slot = static_cast<uint32_t>(random() % kShmSlots);
    pair.memory().ring[i].store(ShmLap(i) * kShmSlots + slot);
    const uint64_t any = random();
    pair.memory().slots[slot].payload = {.region = any % 2 == 0 ? ShmPlace::kWithSlot : 0,
                                         .offset = random(),
                                         .bytes = any % 3 == 0 ? any : any % kShmCopiedBytes};
  }
  for (uint32_t i = 0; i < kShmSlots; ++i) {
    const auto taken = pair.receiver->Take();
    ASSERT_TRUE(taken.has_value());
    ASSERT_LT(taken->slot, kShmSlots);
    ASSERT_LE(taken->payload.size_bytes(), kShmCopiedBytes);
    ASSERT_TRUE(!taken->is_too_long() || taken->payload.size_bytes() == 0);
    pair.receiver->Release(taken->slot);
  }
  EXPECT_FALSE(pair.receiver->Take().has_value()) << "the next lap has other numbers";
}

TEST(ShmQueue, ASmallPayloadIsCopiedAndItsSlotIsFreeOnceTaken) {
  Pair pair;
  std::array<std::byte, kShmCopiedBytes> payload;
  for (uint64_t n = 0; n < kShmSlots + 1000; ++n) {
    payload.fill(static_cast<std::byte>(n));
    const size_t bytes = n % 7 == 0 ? 0 : n % payload.size();
    ASSERT_TRUE(pair.sender->PushCopy(Numbered(n), std::span(payload).first(bytes)));
    if (n % 2 == 0) continue;
    for (const uint64_t number : {n - 1, n}) {
      const auto taken = pair.receiver->Take();
      ASSERT_TRUE(taken.has_value());
      EXPECT_FALSE(taken->is_leased());
      ASSERT_EQ(NumberOf(*taken), number);
      ASSERT_EQ(taken->payload.size_bytes(), number % 7 == 0 ? 0 : number % payload.size());
      for (const std::byte b : taken->payload.bytes()) {
        ASSERT_EQ(b, static_cast<std::byte>(number));
      }
    }
    pair.sender->Collect();
    ASSERT_LE(pair.sender->occupied(), 8u) << "slots that were used are used again";
  }
}

TEST(ShmQueue, ASenderThatWaitsForASlotIsRungWhenACopyIsTaken) {
  Pair pair;
  for (uint32_t i = 0; i < kShmSlots; ++i) ASSERT_TRUE(pair.sender->PushCopy(Numbered(i), {}));
  EXPECT_FALSE(pair.sender->PushCopy(Numbered(kShmSlots), {}));
  EXPECT_FALSE(pair.sender->HasReleased());
  pair.sender->WaitForRelease();
  EXPECT_TRUE(pair.receiver->Take()->ring);
  EXPECT_FALSE(pair.receiver->Take()->ring) << "once";
  EXPECT_TRUE(pair.sender->HasReleased());
  EXPECT_FALSE(pair.sender->full());
  EXPECT_TRUE(pair.sender->PushCopy(Numbered(kShmSlots), {}));
}

// One thread sends (every third message a copy), one takes, two release in random order.
TEST(ShmQueue, EveryMessageArrivesOnceWithReleasesFromOtherThreads) {
  Pair pair;
  constexpr uint64_t kMessages = 300000;
  const uint32_t seed = 11;
  std::array<std::mutex, 2> mutexes;
  std::array<std::vector<uint32_t>, 2> to_release;
  std::atomic<bool> done = false;
  auto release = [&](size_t which) {
    std::mt19937 random(seed + static_cast<uint32_t>(which));
    while (true) {
      const bool last = done.load();
      std::vector<uint32_t> slots;
      {
        std::lock_guard lock(mutexes[which]);
        slots.swap(to_release[which]);
      }
      std::shuffle(slots.begin(), slots.end(), random);
      for (const uint32_t slot : slots) pair.receiver->Release(slot);
      if (last && slots.empty()) return;
      if (slots.empty()) std::this_thread::yield();
    }
  };
  std::thread releaser0(release, 0);
  std::thread releaser1(release, 1);
  std::thread taker([&] {
    for (uint64_t n = 0; n < kMessages;) {
      const auto taken = pair.receiver->Take();
      if (!taken.has_value()) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(NumberOf(*taken), n) << "seed " << seed;
      ASSERT_EQ(taken->is_leased(), n % 3 != 0);
      if (taken->is_leased()) {
        std::lock_guard lock(mutexes[n % 2]);
        to_release[n % 2].push_back(taken->slot);
      } else {
        ASSERT_TRUE(std::ranges::equal(taken->payload.bytes(), Numbered(n)));
      }
      ++n;
    }
    done = true;
  });
  for (uint64_t n = 0; n < kMessages;) {
    pair.sender->Collect();
    const bool pushed = n % 3 == 0 ? pair.sender->PushCopy(Numbered(n), Numbered(n))
                                   : pair.sender->Push(Numbered(n), {}, Lease());
    if (pushed) {
      ++n;
    } else {
      std::this_thread::yield();
    }
  }
  taker.join();
  releaser0.join();
  releaser1.join();
  pair.sender->Collect();
  EXPECT_LE(pair.sender->occupied(), 8u) << "what was copied, since the sender looked last";
}

}  // namespace
}  // namespace tug
