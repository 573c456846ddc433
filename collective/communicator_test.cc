// SPDX-License-Identifier: Apache-2.0
// Whole groups in one process: one thread and transport per rank.

#include "collective/communicator.h"

#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/status_macros.h"
#include "collective/algorithms.h"
#include "collective/collective_test_support.h"
#include "collective/schedules/ring.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/dual_transport.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

enum class Path { kTcp, kSharedMemory, kMixed };

constexpr uint64_t kChunkBytes = 16 << 10;

// Ranks with transports and communicators of one group.
class Ranks {
 public:
  Ranks(Path path, uint32_t world, absl::Duration timeout = absl::Seconds(20),
        uint64_t chunk_bytes = kChunkBytes) {
    static std::random_device random;
    options_.group.job = (uint64_t{random()} << 32) | random();
    options_.group.timeout = timeout;
    options_.group.chunk_bytes = chunk_bytes;
    for (uint32_t rank = 0; rank < world; ++rank) {
      DualTransport::Options options;
      options.tcp.self = WorkerPeer(rank + 1);
      options.tcp.bind_host = "127.0.0.1";
      options.job = options_.group.job;
      options.shared_memory =
          path == Path::kSharedMemory || (path == Path::kMixed && rank % 2 == 0);
      auto transport = DualTransport::Create(options);
      EXPECT_TRUE(transport.ok()) << transport.status();
      options_.group.peers.push_back(options.tcp.self);
      options_.endpoints.push_back((*transport)->endpoint());
      transports_.push_back(*std::move(transport));
    }
    communicators_.resize(world);
  }

  uint32_t world() const { return static_cast<uint32_t>(transports_.size()); }
  Transport& transport(uint32_t rank) { return *transports_[rank]; }
  Communicator& communicator(uint32_t rank) { return *communicators_[rank]; }
  CommunicatorOptions& options() { return options_; }

  // Runs `body` in one thread per rank, once all ranks have met.
  void RunAll(const std::function<void(uint32_t rank)>& body) {
    InThreads([&](uint32_t rank) {
      if (communicators_[rank] != nullptr) return;
      const absl::Status opened = Open(rank, /*group=*/0);
      ASSERT_TRUE(opened.ok()) << opened;
    });
    if (!::testing::Test::HasFailure()) InThreads(body);
  }

  // Replaces the rank's communicator.
  absl::Status Open(uint32_t rank, uint32_t group) {
    CommunicatorOptions options = options_;
    options.group.rank = rank;
    options.group.group = group;
    communicators_[rank].reset();
    ASSIGN_OR_RETURN(communicators_[rank],
                     Communicator::Create(std::move(options), *transports_[rank]));
    return absl::OkStatus();
  }

  void Leave(uint32_t rank) {
    communicators_[rank].reset();
    transports_[rank].reset();
  }

 private:
  void InThreads(const std::function<void(uint32_t rank)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < world(); ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
  }

  CommunicatorOptions options_;
  std::vector<std::unique_ptr<DualTransport>> transports_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

void ExpectBytes(const AlignedBuffer& memory, const std::vector<std::byte>& expected,
                 const std::string& what) {
  ASSERT_EQ(std::memcmp(memory.data(), expected.data(), expected.size()), 0) << what;
}

// Runs all-reduces of several sizes, one after another, in one group.
void SumEverything(Path path, uint32_t world, const std::vector<uint64_t>& sizes) {
  AllReduceSettings settings;
  settings.parts = 4;
  settings.ranks_per_host = world % 2 == 0 ? 2 : 1;
  Ranks ranks(path, world);
  ranks.RunAll([&](uint32_t rank) {
    uint64_t round = 0;
    for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
      const CollectiveSchedule schedule = algorithm.schedule(rank, world, settings);
      for (const ElementType type : {ElementType::kFp32, ElementType::kBf16, ElementType::kFp16}) {
        for (const uint64_t elements : sizes) {
          ++round;
          const std::string what = absl::StrCat(algorithm.name, " ", ElementTypeName(type), " x ",
                                                elements, ", rank ", rank, " of ", world);
          const std::vector<std::byte> own = Contribution(type, rank, elements, round);
          const auto memory = ranks.transport(rank).NewBuffer(own.size());
          std::copy(own.begin(), own.end(), memory->data());
          const absl::Status status =
              ranks.communicator(rank).Run(schedule, BufferOf(memory, own.size()), type);
          ASSERT_TRUE(status.ok()) << what << ": " << status;
          ASSERT_EQ(memory.use_count(), 1) << what;
          ExpectBytes(*memory, ExactSum(type, world, elements, round), what);
        }
      }
    }
  });
}

// A collective other than all-reduce: its schedule, and the expected contents of part p of a rank.
struct Other {
  const char* name;
  std::function<CollectiveSchedule(uint32_t rank, uint32_t world)> schedule;
  // Expected value of element `at` of the buffer; none: scratch.
  std::function<std::optional<float>(uint32_t rank, uint32_t world, uint32_t part, uint64_t at)>
      expected;
};

float SumOf(uint32_t world, uint64_t at) {
  float sum = 0;
  for (uint32_t rank = 0; rank < world; ++rank) sum += ContributionOf(rank, at, 0);
  return sum;
}

std::vector<Other> Others() {
  using Value = std::optional<float>;
  return {
      {"broadcast", BroadcastFromRank0,
       [](uint32_t, uint32_t, uint32_t, uint64_t at) -> Value { return ContributionOf(0, at, 0); }},
      {"reduce", ReduceToRank0,
       [](uint32_t r, uint32_t n, uint32_t, uint64_t at) {
         return r == 0 ? Value(SumOf(n, at)) : Value();
       }},
      {"all-gather", RingAllGather,
       [](uint32_t, uint32_t, uint32_t part, uint64_t at) -> Value {
         return ContributionOf(part, at, 0);
       }},
      {"reduce-scatter", RingReduceScatter, [](uint32_t r, uint32_t n, uint32_t part, uint64_t at) {
         return part == r ? Value(SumOf(n, at)) : Value();
       }}};
}

void RunOther(Ranks& ranks, uint32_t rank, const Other& other, uint64_t part_elements) {
  const uint32_t world = ranks.world();
  const uint64_t elements = part_elements * world;
  const auto memory = ranks.transport(rank).NewBuffer(elements * sizeof(float));
  for (uint64_t at = 0; at < elements; ++at) memory->floats()[at] = ContributionOf(rank, at, 0);
  const absl::Status status = ranks.communicator(rank).Run(
      other.schedule(rank, world), BufferOf(memory, elements * sizeof(float)), ElementType::kFp32);
  ASSERT_TRUE(status.ok()) << other.name << ", rank " << rank << ": " << status;
  for (uint64_t at = 0; at < elements; ++at) {
    const auto part = static_cast<uint32_t>(at / part_elements);
    const std::optional<float> expected = other.expected(rank, world, part, at);
    if (!expected.has_value()) continue;
    ASSERT_EQ(memory->floats()[at], *expected)
        << other.name << ", rank " << rank << " of " << world << ", element " << at;
  }
}

class AllReduceTest : public ::testing::TestWithParam<Path> {};
std::string PathName(const ::testing::TestParamInfo<Path>& info) {
  switch (info.param) {
    case Path::kTcp:
      return "Tcp";
    case Path::kSharedMemory:
      return "SharedMemory";
    case Path::kMixed:
      return "Mixed";
  }
  return "";
}
INSTANTIATE_TEST_SUITE_P(Paths, AllReduceTest,
                         ::testing::Values(Path::kTcp, Path::kSharedMemory, Path::kMixed),
                         PathName);

TEST_P(AllReduceTest, SumsEachContributionOnceForEveryAlgorithmTypeAndSize) {
  for (const uint32_t world : {1, 2, 3, 4, 5, 7, 8}) {
    SumEverything(GetParam(), world, {0, 1, 3, 1024, 9999});
  }
}

TEST_P(AllReduceTest, SumsManyChunks) { SumEverything(GetParam(), 4, {1 << 18, 250007}); }

TEST_P(AllReduceTest, EveryOtherCollectiveLeavesWhatItPromises) {
  for (const uint32_t world : {1, 2, 3, 4, 7}) {
    Ranks ranks(GetParam(), world);
    ranks.RunAll([&](uint32_t rank) {
      for (const Other& other : Others()) {
        for (const uint64_t part_elements : {1, 5, 4099}) {
          RunOther(ranks, rank, other, part_elements);
        }
      }
    });
  }
}

// The sum depends on the order of its terms: all ranks must get the same bits, each time.
TEST_P(AllReduceTest, GivesAllRanksTheSameBitsEachTime) {
  constexpr uint64_t kElements = 50021;
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    constexpr uint32_t kWorld = 4;
    Ranks ranks(GetParam(), kWorld);
    std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> results(kWorld);
    ranks.RunAll([&](uint32_t rank) {
      const CollectiveSchedule schedule =
          algorithm.schedule(rank, kWorld, {.parts = 4, .ranks_per_host = 2});
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto memory = ranks.transport(rank).NewBuffer(kElements * sizeof(float));
        for (uint64_t i = 0; i < kElements; ++i) {
          memory->floats()[i] = std::sin(static_cast<float>(i * (rank + 1)));
        }
        ASSERT_TRUE(ranks.communicator(rank)
                        .Run(schedule, BufferOf(memory, memory->size_bytes()), ElementType::kFp32)
                        .ok());
        results[rank].push_back(memory);
      }
    });
    for (uint32_t rank = 0; rank < kWorld; ++rank) {
      for (const auto& result : results[rank]) {
        EXPECT_EQ(std::memcmp(result->data(), results[0][0]->data(), result->size_bytes()), 0)
            << algorithm.name << ", rank " << rank;
      }
    }
  }
}

TEST(Communicator, GroupsFollowOneAnotherOverOneTransport) {
  for (const Path path : {Path::kTcp, Path::kSharedMemory}) {
    Ranks ranks(path, 3);
    ranks.RunAll([&](uint32_t rank) {
      const auto memory = ranks.transport(rank).NewBuffer(4096);
      for (uint32_t group = 1; group <= 10; ++group) {
        const absl::Status opened = ranks.Open(rank, group);
        ASSERT_TRUE(opened.ok()) << opened;
        const absl::Status status = ranks.communicator(rank).Run(
            group % 2 == 0 ? ReduceToRank0(rank, 3) : BroadcastFromRank0(rank, 3),
            BufferOf(memory, 4096), ElementType::kFp32);
        ASSERT_TRUE(status.ok()) << status;
      }
    });
  }
}

// Ranks start late by less than the others' spin time, by about as long, and by more.
TEST(Communicator, RanksThatComeLateFindTheOthersAwakeOrAsleep) {
  constexpr int kRounds = 300;
  constexpr uint64_t kElements = 100;
  Ranks ranks(Path::kSharedMemory, 2);
  ranks.RunAll([&](uint32_t rank) {
    std::mt19937 random(rank);
    const auto memory = ranks.transport(rank).NewBuffer(kElements * sizeof(float));
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<std::byte> own =
          Contribution(ElementType::kFp32, rank, kElements, static_cast<uint64_t>(round));
      std::copy(own.begin(), own.end(), memory->data());
      const absl::Time end = absl::Now() + absl::Microseconds(random() % 100);
      while (absl::Now() < end) {
      }
      const absl::Status status = ranks.communicator(rank).Run(
          RingAllReduce(rank, 2), BufferOf(memory, own.size()), ElementType::kFp32);
      ASSERT_TRUE(status.ok()) << status;
      ExpectBytes(*memory, ExactSum(ElementType::kFp32, 2, kElements, static_cast<uint64_t>(round)),
                  absl::StrCat("round ", round));
    }
  });
}

TEST(Communicator, NamesTheRankThatDoesNotComeOnAllOthers) {
  for (const Path path : {Path::kTcp, Path::kSharedMemory}) {
    Ranks ranks(path, 3);
    ranks.options().group.patience = absl::Seconds(2);
    std::vector<std::thread> threads;
    for (const uint32_t rank : {0, 2}) {
      threads.emplace_back([&, rank] {
        const absl::Status status = ranks.Open(rank, 0);
        EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
        EXPECT_THAT(std::string(status.message()),
                    AllOf(HasSubstr("rank 1 (node 2)"), HasSubstr("did not connect within")));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Communicator, SaysWhoHasAnotherSize) {
  Ranks ranks(Path::kTcp, 3);
  ranks.RunAll([&](uint32_t rank) {
    const uint64_t elements = rank == 1 ? 512 : 4096;
    const auto memory = ranks.transport(rank).NewBuffer(elements * 4);
    const absl::Status status =
        ranks.communicator(rank).Run(FindAllReduce("ring")->schedule(rank, 3, {}),
                                     BufferOf(memory, elements * 4), ElementType::kFp32);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("512 FP32"), HasSubstr("4096 FP32"), HasSubstr("rank 1")));
    // Later calls fail with the same error.
    EXPECT_EQ(ranks.communicator(rank).Run(CollectiveSchedule{}, {}, ElementType::kFp32), status);
  });
}

TEST(Communicator, SaysWhoHasAnotherAlgorithm) {
  Ranks ranks(Path::kSharedMemory, 4);
  ranks.RunAll([&](uint32_t rank) {
    const char* name = rank == 2 ? "recursive_doubling" : "ring";
    const auto memory = ranks.transport(rank).NewBuffer(4096);
    const absl::Status status = ranks.communicator(rank).Run(
        FindAllReduce(name)->schedule(rank, 4, {}), BufferOf(memory, 4096), ElementType::kFp32);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2"));
  });
}

// Rank 2 never starts; the Abort on rank 0 fails all other ranks.
TEST(Communicator, AbortNamesTheRankOnAllRanks) {
  for (const Path path : {Path::kTcp, Path::kSharedMemory}) {
    Ranks ranks(path, 5);
    ranks.RunAll([&](uint32_t rank) {
      if (rank == 2) return;
      if (rank == 0) ranks.communicator(0).Abort(2, "is dead");
      const auto memory = ranks.transport(rank).NewBuffer(1 << 20);
      const absl::Status status =
          ranks.communicator(rank).Run(FindAllReduce("ring")->schedule(rank, 5, {}),
                                       BufferOf(memory, 1 << 20), ElementType::kFp32);
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 (node 3) is dead"));
    });
  }
}

// Rank 1 sends the messages of two steps, then nothing.
TEST(Communicator, SilenceInTheMiddleNamesTheRankOnAllRanks) {
  constexpr uint32_t kWorld = 5;
  constexpr absl::Duration kTimeout = absl::Seconds(2);
  for (const Path path : {Path::kTcp, Path::kSharedMemory}) {
    Ranks ranks(path, kWorld, kTimeout);
    ranks.RunAll([&](uint32_t rank) {
      const auto memory = ranks.transport(rank).NewBuffer(1 << 20);
      CollectiveSchedule schedule = FindAllReduce("ring")->schedule(rank, kWorld, {});
      if (rank == 1) {
        for (size_t s = 2; s < schedule.steps.size(); ++s) schedule.steps[s].sends.clear();
      }
      const absl::Status status =
          ranks.communicator(rank).Run(schedule, BufferOf(memory, 1 << 20), ElementType::kFp32);
      if (rank == 1) return;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("rank 1 (node 2)"), HasSubstr("during collective")));
    });
  }
}

// Short payloads are copied when posted, so rank 0 finishes and leaves before rank 1 starts.
TEST(Communicator, PostedMessagesOutliveTheirRank) {
  constexpr uint64_t kRounds = 5;
  constexpr uint64_t kElements = 100;
  Ranks ranks(Path::kSharedMemory, 2);
  absl::Notification gone;
  ranks.RunAll([&](uint32_t rank) {
    const auto memory = ranks.transport(rank).NewBuffer(kElements * sizeof(float));
    if (rank == 1) gone.WaitForNotification();
    for (uint64_t round = 0; round < kRounds; ++round) {
      const std::vector<std::byte> own = Contribution(ElementType::kFp32, rank, kElements, round);
      std::copy(own.begin(), own.end(), memory->data());
      const absl::Status status = ranks.communicator(rank).Run(
          BroadcastFromRank0(rank, 2), BufferOf(memory, own.size()), ElementType::kFp32);
      ASSERT_TRUE(status.ok()) << "rank " << rank << ", round " << round << ": " << status;
      ExpectBytes(*memory, Contribution(ElementType::kFp32, 0, kElements, round), "broadcast");
    }
    if (rank != 0) return;
    ranks.Leave(0);
    gone.Notify();
  });
}

// Short payloads are copied when sent, so rank 2 finishes before rank 1 starts.
TEST(Communicator, ARankThatLeavesAfterItsPartDoesNotDisturbTheOthers) {
  for (const Path path : {Path::kTcp, Path::kSharedMemory}) {
    Ranks ranks(path, 3);
    absl::Notification gone;
    ranks.RunAll([&](uint32_t rank) {
      const auto memory = ranks.transport(rank).NewBuffer(4096);
      if (rank == 1) gone.WaitForNotification();
      const absl::Status status = ranks.communicator(rank).Run(
          ReduceToRank0(rank, 3), BufferOf(memory, 4096), ElementType::kFp32);
      EXPECT_TRUE(status.ok()) << rank << ": " << status;
      if (rank != 2) return;
      ranks.Leave(2);
      gone.Notify();
    });
  }
}

}  // namespace
}  // namespace tug
