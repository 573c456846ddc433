// SPDX-License-Identifier: Apache-2.0
#include "collective/port_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collective/algorithms.h"
#include "collective/collective_test_support.h"
#include "collective/message_plan.h"
#include "collective/schedules/binary_tree.h"
#include "collective/schedules/halving_doubling.h"
#include "collective/schedules/ring.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kElements = 1024;

MessagePlan PlanOf(const CollectiveSchedule& schedule, uint32_t rank, uint32_t world,
                   MessageSizes sizes, bool over_network = true) {
  const auto plan =
      PlanMessages(schedule, rank, world, kElements, sizes, std::vector<bool>(world, over_network));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

constexpr MessageSizes kWhole{.chunk_elements = kElements, .word_elements = 0};

// (step of this rank's sends that the word is about, received), in order.
std::vector<std::pair<uint32_t, bool>> Awaited(const MessagePlan& plan) {
  std::vector<std::pair<uint32_t, bool>> words;
  for (const PortWord& word : plan.awaited) {
    words.emplace_back(plan.sends[plan.sends_to[word.peer][word.number]].step, word.received);
  }
  return words;
}

// Steps 0 to 2 halve, 3 to 5 double; 2 and 3 have the same peer.
TEST(PortOrder, ChangeOfPeerWaitsForOldAndNewPeer) {
  const MessagePlan plan = PlanOf(HalvingDoublingAllReduce(0, 8), 0, 8, kWhole);
  EXPECT_THAT(Awaited(plan),
              ElementsAre(std::pair(0, false), std::pair(0, true), std::pair(1, false),
                          std::pair(1, true), std::pair(2, false), std::pair(3, true),
                          std::pair(4, false), std::pair(4, true), std::pair(5, false)));
  for (uint32_t word = 0; word < plan.awaited.size(); ++word) {
    const auto [about, received] = Awaited(plan)[word];
    for (const uint32_t send : plan.sends_after_words[word]) {
      EXPECT_EQ(plan.sends[send].step, received ? about + 1 : about);
    }
  }
}

TEST(PortOrder, OnlyWhatIsLargeIsWorthAWord) {
  const CollectiveSchedule schedule = HalvingDoublingAllReduce(0, 8);
  EXPECT_THAT(
      Awaited(PlanOf(schedule, 0, 8,
                     {.chunk_elements = kElements / 16, .word_elements = kElements / 4})),
      ElementsAre(std::pair(0, false), std::pair(0, true), std::pair(1, false), std::pair(1, true),
                  std::pair(4, false), std::pair(4, true), std::pair(5, false)));
  EXPECT_THAT(
      PlanOf(schedule, 0, 8, {.chunk_elements = kElements, .word_elements = kElements}).said,
      IsEmpty());
}

// Two messages in step 0, then one in step 1.
TEST(PortOrder, WordsAreSaidAfterTheReceivesOfTheStepsBefore) {
  const MessagePlan plan = PlanOf(HalvingDoublingAllReduce(0, 4), 0, 4,
                                  {.chunk_elements = kElements / 4, .word_elements = 0});
  ASSERT_EQ(plan.receives[1].step, 0u);
  ASSERT_EQ(plan.receives[2].step, 1u);
  ASSERT_GE(plan.said.size(), 3u);
  EXPECT_EQ(plan.said[0], (PortWord{1, 0, false}));
  EXPECT_EQ(plan.said_waits[0], 0u);
  EXPECT_EQ(plan.said[1], (PortWord{1, 0, true}));
  EXPECT_EQ(plan.said_waits[1], 2u);
  EXPECT_EQ(plan.said[2], (PortWord{2, 0, false}));
  EXPECT_EQ(plan.said_waits[2], 1u);  // last message of each rank: they arrive in order
  EXPECT_THAT(plan.said_after[0], ElementsAre(1));
  EXPECT_THAT(plan.said_after[1], AllOf(Contains(1), Contains(2)));
}

// Their ranks have the same neighbours in all steps.
TEST(PortOrder, RingsAndTreesInPartsHaveNoWords) {
  EXPECT_THAT(PlanOf(RingAllReduce(1, 5), 1, 5, kWhole).said, IsEmpty());
  EXPECT_THAT(PlanOf(BinaryTreeAllReduce(1, 7, 16), 1, 7, kWhole).said, IsEmpty());
}

TEST(PortOrder, InMemoryAndBetweenTwoThereAreNoWords) {
  EXPECT_THAT(PlanOf(HalvingDoublingAllReduce(1, 2), 1, 2, kWhole).said, IsEmpty());
  EXPECT_THAT(PlanOf(HalvingDoublingAllReduce(1, 8), 1, 8, kWhole, false).said, IsEmpty());
}

using ScheduleOf = std::function<CollectiveSchedule(uint32_t rank, uint32_t world)>;

std::map<std::string, ScheduleOf> AllSchedules() {
  std::map<std::string, ScheduleOf> all;
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    all[algorithm.name] = [&algorithm](uint32_t rank, uint32_t world) {
      return algorithm.schedule(rank, world,
                                {.parts = algorithm.has_parts ? 3u : 1u, .ranks_per_host = 2});
    };
  }
  all["broadcast"] = BroadcastFromRank0;
  all["reduce"] = ReduceToRank0;
  return all;
}

// Otherwise a rank would wait forever. Hosts of `ranks_per_host` ranks share memory.
void ExpectAwaitedWordsAreSaid(const std::string& name, const ScheduleOf& schedule, uint32_t world,
                               uint64_t least, uint32_t ranks_per_host) {
  const uint64_t elements = uint64_t{world} * 31;
  std::vector<MessagePlan> plans;
  for (uint32_t rank = 0; rank < world; ++rank) {
    std::vector<bool> over_network(world);
    for (uint32_t other = 0; other < world; ++other) {
      over_network[other] = other / ranks_per_host != rank / ranks_per_host;
    }
    const auto plan = PlanMessages(schedule(rank, world), rank, world, elements,
                                   {.chunk_elements = 30, .word_elements = least}, over_network);
    ASSERT_TRUE(plan.ok()) << plan.status();
    plans.push_back(*plan);
  }
  for (uint32_t rank = 0; rank < world; ++rank) {
    for (const PortWord& word : plans[rank].awaited) {
      const PortWord as_said{rank, word.number, word.received};
      const std::vector<PortWord>& said = plans[word.peer].said;
      ASSERT_EQ(std::count(said.begin(), said.end(), as_said), 1)
          << name << " of " << world << ", " << ranks_per_host << " a host: rank " << rank
          << " waits for a word of " << word.peer << " about message " << word.number;
    }
  }
}

TEST(PortOrder, EveryWordThatIsAwaitedIsSaid) {
  for (const auto& [name, schedule] : AllSchedules()) {
    for (uint32_t world = 3; world <= 33; ++world) {
      for (const uint32_t ranks_per_host : {1, 2, 5}) {
        for (const uint64_t least : {0, 40}) {
          ASSERT_NO_FATAL_FAILURE(
              ExpectAwaitedWordsAreSaid(name, schedule, world, least, ranks_per_host));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tug
