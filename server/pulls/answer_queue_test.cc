// SPDX-License-Identifier: Apache-2.0
#include "server/pulls/answer_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace tug {
namespace {

constexpr PeerId kWorker = WorkerPeer(7);
constexpr absl::Duration kLostAfter = absl::Seconds(10);

AnswerQueue::Options Options(uint64_t credit_bytes) {
  return {.credit_bytes = credit_bytes, .max_workers = 4, .lost_after = kLostAfter};
}

WaitingPull Pull(uint32_t block, uint32_t first, uint64_t version = 1, PeerId worker = kWorker) {
  WireHeader header;
  header.kind = MessageKind::kPull;
  header.sender = worker;
  header.block = block;
  header.first_segment = first;
  header.segment_count = 1;
  header.clock = version;
  return {header, Lease()};
}

class AnswerQueueTest : public testing::Test {
 protected:
  bool Add(uint32_t block, uint32_t first = 0, uint64_t version = 1, PeerId worker = kWorker) {
    return queue_.Add(Pull(block, first, version, worker), 4 * block + first, 10);
  }
  // Blocks and numbers of the answers that leave.
  std::vector<std::pair<uint32_t, uint64_t>> Leave(PeerId worker = kWorker) {
    std::vector<std::pair<uint32_t, uint64_t>> left;
    while (const auto turn = queue_.Next(worker, now_)) {
      left.emplace_back(turn->pull.header.block, turn->number);
    }
    return left;
  }

  absl::Time now_ = absl::UnixEpoch();
  AnswerQueue queue_{Options(20)};
};

TEST_F(AnswerQueueTest, LetsAnUrgentBlockOvertakeUnderTheCredit) {
  for (uint32_t block : {5u, 4u, 3u, 0u}) EXPECT_TRUE(Add(block));
  const auto first = Leave();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].first, 0u);
  EXPECT_EQ(first[1].first, 3u);
  Add(1);
  EXPECT_TRUE(queue_.Received(kWorker, first[0].second));
  const auto second = Leave();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].first, 1u);
  EXPECT_EQ(queue_.most_outstanding_bytes(), 20u);
}

TEST_F(AnswerQueueTest, GivesEveryWorkerACreditOfItsOwn) {
  for (uint32_t block : {0u, 1u, 2u}) {
    Add(block);
    Add(block, 0, 1, WorkerPeer(8));
  }
  EXPECT_EQ(Leave().size(), 2u);
  EXPECT_EQ(Leave(WorkerPeer(8)).size(), 2u);
  EXPECT_EQ(queue_.most_outstanding_bytes(), 20u);
}

TEST_F(AnswerQueueTest, TakesAnotherCreditForAllWorkersNowAndLater) {
  for (uint32_t block : {0u, 1u, 2u, 3u, 4u}) {
    Add(block);
    Add(block, 0, 1, WorkerPeer(8));
  }
  EXPECT_EQ(Leave().size(), 2u);
  EXPECT_EQ(Leave(WorkerPeer(8)).size(), 2u);
  queue_.SetCredit(40);
  std::vector<PeerId> workers;
  queue_.ListWorkers(workers);
  EXPECT_EQ(std::set<PeerId>(workers.begin(), workers.end()),
            (std::set<PeerId>{kWorker, WorkerPeer(8)}));
  EXPECT_EQ(Leave().size(), 2u);
  EXPECT_EQ(Leave(WorkerPeer(8)).size(), 2u);
  for (uint32_t block : {0u, 1u, 2u, 3u, 4u}) Add(block, 0, 1, WorkerPeer(9));
  EXPECT_EQ(Leave(WorkerPeer(9)).size(), 4u);
}

TEST_F(AnswerQueueTest, ReturnsTheCreditOfAnAnswerThatIsAskedForAgain) {
  Add(0);
  Add(1);
  const auto lost = Leave();
  EXPECT_TRUE(Add(0));
  EXPECT_EQ(queue_.outstanding_bytes(kWorker), 10u);
  const auto again = Leave();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_NE(again[0].second, lost[0].second);
  EXPECT_FALSE(queue_.Received(kWorker, lost[0].second)) << "late word of the first sending";
  EXPECT_EQ(queue_.outstanding_bytes(kWorker), 20u);
  EXPECT_TRUE(queue_.Received(kWorker, again[0].second));
  EXPECT_FALSE(queue_.Received(kWorker, again[0].second));
  EXPECT_EQ(queue_.outstanding_bytes(kWorker), 10u);
}

TEST_F(AnswerQueueTest, KnowsARepeatOfWhatWaitsAndTakesANewerPullInItsPlace) {
  for (uint32_t block : {0u, 1u, 2u}) Add(block);
  Leave();
  EXPECT_FALSE(Add(2));
  EXPECT_TRUE(Add(2, 0, 2));
  for (uint32_t block : {0u, 1u}) Add(block);  // releases their credit
  const auto left = Leave();
  ASSERT_EQ(left.size(), 2u);
  for (const auto& [block, number] : left) queue_.Received(kWorker, number);
  const auto turn = queue_.Next(kWorker, now_);
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(turn->pull.header.clock, 2u);
}

TEST_F(AnswerQueueTest, TakesBackTheCreditOfAWorkerThatIsGone) {
  for (uint32_t block : {0u, 1u, 2u}) Add(block);
  Leave();
  std::vector<PeerId> workers;
  now_ += kLostAfter - absl::Seconds(1);
  queue_.OnTick(now_, workers);
  EXPECT_TRUE(workers.empty());
  now_ += kLostAfter;
  queue_.OnTick(now_, workers);
  EXPECT_EQ(workers, std::vector<PeerId>{kWorker});
  EXPECT_EQ(queue_.outstanding_bytes(kWorker), 0u);
  EXPECT_EQ(Leave().size(), 1u);
}

TEST_F(AnswerQueueTest, RefusesMoreWorkersThanAJobCanHaveUntilOneIsIdle) {
  for (uint32_t id : {1u, 2u, 3u, 4u}) {
    EXPECT_TRUE(queue_.Admit(WorkerPeer(id)));
    Add(0, 0, 1, WorkerPeer(id));
  }
  EXPECT_TRUE(queue_.Admit(WorkerPeer(1)));
  EXPECT_FALSE(queue_.Admit(WorkerPeer(5)));
  const auto left = Leave(WorkerPeer(3));
  queue_.Received(WorkerPeer(3), left[0].second);
  EXPECT_TRUE(queue_.Admit(WorkerPeer(5)));
  Add(0, 0, 1, WorkerPeer(5));
  EXPECT_FALSE(queue_.Admit(WorkerPeer(6)));
}

TEST_F(AnswerQueueTest, IgnoresNumbersThatItHasNotGiven) {
  Add(0);
  const uint64_t number = Leave()[0].second;
  for (const uint64_t wrong :
       {uint64_t{0}, number + 1, number + (uint64_t{1} << 32), ~uint64_t{0}}) {
    EXPECT_FALSE(queue_.Received(kWorker, wrong));
  }
  EXPECT_FALSE(queue_.Received(WorkerPeer(9), number));
  EXPECT_TRUE(queue_.Received(kWorker, number));
}

// One run under the policy `scheduler`.
void RunWithLosses(CommConfig::Scheduler scheduler, uint32_t seed) {
  std::mt19937 random(seed);
  AnswerQueue::Options options = Options(30 + random() % 100);
  options.scheduler = scheduler;
  AnswerQueue queue(options);
  absl::Time now = absl::UnixEpoch();
  uint64_t largest = 0;
  std::set<uint32_t> open;  // first segments that the worker still misses
  std::vector<std::pair<uint32_t, uint64_t>> on_the_way;
  std::vector<uint64_t> words;
  const auto ask = [&](uint32_t first_id) {
    const uint64_t bytes = 1 + first_id * 37 % 50;
    largest = std::max(largest, bytes);
    queue.Add(Pull(first_id / 4, first_id % 4), first_id, bytes);
  };
  const auto leave = [&] {
    while (const auto turn = queue.Next(kWorker, now)) {
      const WireHeader& header = turn->pull.header;
      on_the_way.emplace_back(4 * header.block + header.first_segment, turn->number);
    }
    ASSERT_LE(queue.outstanding_bytes(kWorker), std::max(options.credit_bytes, largest));
  };
  std::vector<PeerId> workers;
  for (int step = 0; step < 600 || !open.empty(); ++step) {
    ASSERT_LT(step, 20000) << "stands still";
    const uint32_t pick = random() % 64;
    if (step < 600 && open.insert(pick).second) ask(pick);
    if (step % 50 == 0) {  // after resend_ms the worker asks again
      now += kLostAfter;
      for (const uint32_t first_id : open) ask(first_id);
      queue.OnTick(now, workers);
    }
    leave();
    if (!on_the_way.empty()) {
      const auto answer = on_the_way[random() % on_the_way.size()];
      if (random() % 4 > 0) std::erase(on_the_way, answer);  // else the answer arrives once more
      if (random() % 5 > 0) {
        open.erase(answer.first);
        if (random() % 5 > 0) words.push_back(answer.second);
      }
    }
    if (!words.empty() && random() % 2 == 0) {
      queue.Received(kWorker, words[random() % words.size()]);
    }
  }
  leave();
  for (int i = 0; i < 64; ++i) {  // answers without acknowledgement expire
    now += 2 * kLostAfter;
    queue.OnTick(now, workers);
    leave();
  }
  now += 2 * kLostAfter;
  queue.OnTick(now, workers);
  EXPECT_EQ(queue.outstanding_bytes(kWorker), 0u);
}

// Answers and acknowledgements are lost, late and repeated, and pulls are resent: every pull is
// answered, never beyond the credit, and all credit returns.
TEST(AnswerQueueProperty, AnswersEveryPullUnderTheCreditThatAlwaysComesBack) {
  for (const SchedulingPolicy& policy : kSchedulingPolicies) {
    for (uint32_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(seed);
      ASSERT_NO_FATAL_FAILURE(RunWithLosses(policy.name, seed));
    }
  }
}

}  // namespace
}  // namespace tug
