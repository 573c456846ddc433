// SPDX-License-Identifier: Apache-2.0
#include "scheduler/credit_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace tug {
namespace {

using Ticket = CreditQueue::Ticket;

TEST(SchedulingPolicies, HasARowForEveryNameOfTheConfiguration) {
  const google::protobuf::EnumDescriptor* names = CommConfig::Scheduler_descriptor();
  for (int i = 0; i < names->value_count(); ++i) {
    const auto name = static_cast<CommConfig::Scheduler>(names->value(i)->number());
    const auto rows = std::count_if(kSchedulingPolicies.begin(), kSchedulingPolicies.end(),
                                    [&](const SchedulingPolicy& p) { return p.name == name; });
    // AUTO has no order of its own.
    const bool own = name != CommConfig::SCHEDULER_DEFAULT && name != CommConfig::AUTO;
    EXPECT_EQ(rows, own ? 1 : 0) << names->value(i)->name();
  }
  EXPECT_EQ(PolicyOf(CommConfig::AUTO).name, CommConfig::BYTESCHEDULER);
}

// ---- the example of policy.h ----

// Order in which blocks leave under credit for one partition, when blocks 1 and 0 complete while
// the first partition of block 2 is in flight.
std::vector<uint64_t> OrderOfBlocks(CommConfig::Scheduler name) {
  CreditQueue queue(PolicyOf(name), 10);
  std::vector<Ticket> tickets;
  const auto complete = [&](uint32_t block) {
    for (int p = 0; p < 2; ++p) tickets.push_back(queue.Enqueue({block, block, 10, block}));
  };
  std::vector<uint64_t> order;
  complete(2);
  order.push_back(*queue.Next());
  complete(1);
  complete(0);
  while (queue.waiting() > 0) {
    EXPECT_EQ(queue.Next(), std::nullopt);
    for (Ticket t : tickets) {
      if (queue.IsOutstanding(t)) queue.Received(t);
    }
    order.push_back(*queue.Next());
  }
  return order;
}

TEST(CreditQueue, FifoSendsBlocksAsTheyComplete) {
  EXPECT_EQ(OrderOfBlocks(CommConfig::FIFO), (std::vector<uint64_t>{2, 2, 1, 1, 0, 0}));
}

TEST(CreditQueue, PrioritySendsWholeBlocksTheMostUrgentFirst) {
  EXPECT_EQ(OrderOfBlocks(CommConfig::PRIORITY), (std::vector<uint64_t>{2, 2, 0, 0, 1, 1}));
}

TEST(CreditQueue, ByteSchedulerPreemptsABlockBetweenItsPartitions) {
  EXPECT_EQ(OrderOfBlocks(CommConfig::BYTESCHEDULER), (std::vector<uint64_t>{2, 0, 0, 1, 1, 2}));
}

TEST(CreditQueue, CountsWhatWaits) {
  CreditQueue queue(PolicyOf(CommConfig::FIFO), 10);
  const Ticket first = queue.Enqueue({0, 0, 10, 0});
  const Ticket second = queue.Enqueue({1, 1, 7, 1});
  EXPECT_EQ(queue.waiting_bytes(), 17u);
  queue.Next();
  EXPECT_EQ(queue.waiting_bytes(), 7u);
  queue.Received(first);
  queue.EnqueueAgain(first);
  EXPECT_EQ(queue.waiting_bytes(), 17u);
  queue.Committed(second);  // while it waits
  EXPECT_EQ(queue.waiting_bytes(), 10u);
}

// Two virtual workers push the same block; block 0 must not wait for the second push.
TEST(CreditQueue, PriorityEndsABlockWhereAnotherSendingOfItBegins) {
  CreditQueue queue(PolicyOf(CommConfig::PRIORITY), 10);
  const Ticket first = queue.Enqueue({.priority = 5, .group = 1, .bytes = 10, .item = 51});
  EXPECT_EQ(queue.Next(), 51u);
  queue.Enqueue({.priority = 5, .group = 2, .bytes = 10, .item = 52});
  queue.Enqueue({.priority = 0, .group = 3, .bytes = 10, .item = 0});
  queue.Received(first);
  EXPECT_EQ(queue.Next(), 0u);
}

TEST(CreditQueue, PriorityEndsABlockWhoseLastPartitionIsWithdrawn) {
  CreditQueue queue(PolicyOf(CommConfig::PRIORITY), 10);
  const Ticket first = queue.Enqueue({.priority = 5, .group = 1, .bytes = 10, .item = 51});
  const Ticket second = queue.Enqueue({.priority = 5, .group = 1, .bytes = 10, .item = 52});
  EXPECT_EQ(queue.Next(), 51u);
  queue.Committed(second);
  queue.Committed(first);
  queue.Enqueue({.priority = 5, .group = 1, .bytes = 10, .item = 53});  // next push of the block
  queue.Enqueue({.priority = 0, .group = 2, .bytes = 10, .item = 0});
  EXPECT_EQ(queue.Next(), 0u);
}

TEST(CreditQueue, LetsAnItemLargerThanTheCreditGoAlone) {
  CreditQueue queue(PolicyOf(CommConfig::BYTESCHEDULER), 10);
  const Ticket small = queue.Enqueue({0, 0, 4, 1});
  const Ticket large = queue.Enqueue({0, 0, 50, 2});
  EXPECT_EQ(queue.Next(), 1u);
  EXPECT_EQ(queue.Next(), std::nullopt);
  queue.Received(small);
  EXPECT_EQ(queue.Next(), 2u);
  queue.Committed(large);
  EXPECT_EQ(queue.outstanding_bytes(), 0u);
  EXPECT_EQ(queue.most_outstanding_bytes(), 50u);
}

TEST(CreditQueue, TakesAnotherCreditAtOnce) {
  CreditQueue queue(PolicyOf(CommConfig::BYTESCHEDULER), 20);
  std::vector<Ticket> tickets;
  for (uint32_t item = 0; item < 6; ++item) tickets.push_back(queue.Enqueue({0, 0, 10, item}));
  while (queue.Next().has_value()) {
  }
  EXPECT_EQ(queue.outstanding_bytes(), 20u);
  queue.set_credit_bytes(40);
  while (queue.Next().has_value()) {
  }
  EXPECT_EQ(queue.outstanding_bytes(), 40u);
  queue.set_credit_bytes(10);
  for (uint32_t item = 0; item < 3; ++item) {
    EXPECT_EQ(queue.Next(), std::nullopt);
    queue.Received(tickets[item]);
  }
  EXPECT_EQ(queue.Next(), std::nullopt) << "what is outstanding fills the smaller one";
  queue.Received(tickets[3]);
  EXPECT_EQ(queue.Next(), 4u);
  EXPECT_EQ(queue.Next(), std::nullopt);
}

TEST(CreditQueue, HoldsNoMoreThanAnItemHasTurnedOutToBe) {
  CreditQueue queue(PolicyOf(CommConfig::FIFO), 10);
  const Ticket first = queue.Enqueue({0, 0, 10, 1});
  queue.Enqueue({0, 1, 8, 2});
  EXPECT_EQ(queue.Next(), 1u);
  EXPECT_EQ(queue.Next(), std::nullopt);
  queue.Shrink(first, 2);
  EXPECT_EQ(queue.Next(), 2u);
  EXPECT_EQ(queue.outstanding_bytes(), 10u);
  queue.Received(first);
  EXPECT_EQ(queue.outstanding_bytes(), 8u);
  queue.Shrink(first, 1);
  EXPECT_EQ(queue.outstanding_bytes(), 8u);
}

TEST(CreditQueue, ReturnsCreditOnceHoweverOftenItIsSaid) {
  CreditQueue queue(PolicyOf(CommConfig::FIFO), 100);
  const Ticket a = queue.Enqueue({0, 0, 10, 1});
  const Ticket b = queue.Enqueue({0, 0, 20, 2});
  queue.Next();
  queue.Next();
  queue.Received(a);
  queue.Received(a);
  queue.Committed(a);
  EXPECT_EQ(queue.outstanding_bytes(), 20u);
  queue.Committed(b);  // kReceived was lost
  EXPECT_EQ(queue.outstanding_bytes(), 0u);
}

// ---- properties: random events in any order ----

// The specification: a list of waiting partitions in order of arrival, searched linearly.
class NaiveQueue {
 public:
  NaiveQueue(const SchedulingPolicy& policy, uint64_t credit_bytes)
      : policy_(policy), credit_bytes_(credit_bytes) {}

  void set_credit_bytes(uint64_t credit_bytes) { credit_bytes_ = credit_bytes; }
  void Enqueue(const CreditQueue::Entry& entry) { waiting_.push_back(entry); }
  std::optional<uint64_t> Next() {
    if (waiting_.empty()) return std::nullopt;
    auto next = std::min_element(waiting_.begin(), waiting_.end(), [&](auto& a, auto& b) {
      return policy_.by_priority && a.priority < b.priority;  // the first of equal ones
    });
    if (policy_.whole_blocks && begun_.has_value()) {
      next = std::find_if(waiting_.begin(), waiting_.end(),
                          [&](auto& e) { return e.group == *begun_; });
    }
    if (!outstanding_.empty() && outstanding_bytes() + next->bytes > credit_bytes_) {
      return std::nullopt;
    }
    const CreditQueue::Entry entry = *next;
    waiting_.erase(next);
    outstanding_[entry.item] = entry;
    begun_ = entry.group;
    EndBlock();
    return entry.item;
  }
  void Received(uint64_t item) {
    outstanding_.erase(item);
    std::erase_if(waiting_, [&](auto& e) { return e.item == item; });
    EndBlock();
  }
  bool Waits(uint64_t item) const {
    return std::any_of(waiting_.begin(), waiting_.end(), [&](auto& e) { return e.item == item; });
  }
  const std::deque<CreditQueue::Entry>& waiting() const { return waiting_; }
  std::optional<uint64_t> begun() const { return begun_; }
  uint64_t outstanding_bytes() const {
    uint64_t bytes = 0;
    for (const auto& [item, entry] : outstanding_) bytes += entry.bytes;
    return bytes;
  }

 private:
  // A block counts as begun while it has waiting partitions.
  void EndBlock() {
    const bool waits =
        begun_.has_value() &&
        std::any_of(waiting_.begin(), waiting_.end(), [&](auto& e) { return e.group == *begun_; });
    if (!waits) begun_.reset();
  }

  const SchedulingPolicy policy_;
  uint64_t credit_bytes_;
  std::deque<CreditQueue::Entry> waiting_;
  std::map<uint64_t, CreditQueue::Entry> outstanding_;  // by item
  std::optional<uint64_t> begun_;                       // group
};

class CreditQueueProperties : public testing::TestWithParam<SchedulingPolicy> {
 protected:
  struct Partition {
    CreditQueue::Entry entry;
    Ticket ticket = 0;
    int may_leave = 1;  // times it may leave: 1, plus 1 for every EnqueueAgain
    int left = 0;
    bool received = false;
    bool committed = false;
    uint64_t lower_left_since = 0;  // bytes of less urgent partitions that left while it waited
  };

  void Run(uint32_t seed) {
    random_.seed(seed);
    credit_ = 1 + random_() % 300;
    allowed_ = largest_credit_ = credit_;
    parts_.clear();
    largest_ = 0;
    queue_.emplace(PolicyOf(GetParam().name), credit_);
    naive_.emplace(GetParam(), credit_);
    for (uint64_t group = 0; group < 60; ++group) {
      CompleteBlock(group);
      for (int i = 0; i < 6; ++i) Step();
      if (random_() % 8 == 0) SetCredit(1 + random_() % 300);
    }
    Drain();
  }

  void SetCredit(uint64_t credit) {
    credit_ = credit;
    largest_credit_ = std::max(largest_credit_, credit);
    queue_->set_credit_bytes(credit);
    naive_->set_credit_bytes(credit);
    allowed_ = std::max(credit, queue_->outstanding_bytes());
  }

  void CompleteBlock(uint64_t group) {
    const uint32_t priority = random_() % 70 * (random_() % 2);
    for (uint64_t p = 1 + random_() % 6; p > 0; --p) {
      Partition part;
      part.entry = {priority, group, 1 + random_() % 80, parts_.size()};
      part.ticket = queue_->Enqueue(part.entry);
      naive_->Enqueue(part.entry);
      largest_ = std::max(largest_, part.entry.bytes);
      parts_.push_back(part);
    }
  }

  void Leave() {
    const std::deque<CreditQueue::Entry> waited = naive_->waiting();
    const std::optional<uint64_t> begun = naive_->begun();
    const std::optional<uint64_t> item = queue_->Next();
    ASSERT_EQ(item, naive_->Next());
    if (!item.has_value()) return;
    Partition& part = parts_[*item];
    ASSERT_FALSE(part.committed);
    ++part.left;
    ASSERT_EQ(part.left, part.may_leave) << "sent twice";
    for (const CreditQueue::Entry& other : waited) {
      if (other.priority < part.entry.priority) {
        parts_[other.item].lower_left_since += part.entry.bytes;
      }
    }
    if (GetParam().whole_blocks && begun.has_value()) {
      ASSERT_EQ(part.entry.group, *begun) << "a block began amid another";
    }
  }

  void Received(Partition& part) {
    queue_->Received(part.ticket);
    naive_->Received(part.entry.item);
    part.received = true;
  }
  void Committed(Partition& part) {
    queue_->Committed(part.ticket);
    naive_->Received(part.entry.item);
    part.committed = true;
  }

  // Acknowledgements come late, twice, early or never; some partitions are queued again.
  void Step() {
    ASSERT_NO_FATAL_FAILURE(Leave());
    Partition& part = parts_[random_() % parts_.size()];
    if (!part.committed && part.left > 0) {
      switch (random_() % 4) {
        case 0:
        case 1:
          Received(part);
          break;
        case 2:
          Committed(part);
          break;
        case 3:
          if (part.received && !naive_->Waits(part.entry.item)) AskAgain(part);
      }
    }
    CheckCredit();
  }

  void AskAgain(Partition& part) {
    part.received = false;
    part.may_leave = part.left + 1;
    part.entry.group = 1000 + part.entry.item;  // a block of its own
    queue_->EnqueueAgain(part.ticket);
    naive_->Enqueue(part.entry);
  }

  void CheckCredit() {
    ASSERT_EQ(queue_->outstanding_bytes(), naive_->outstanding_bytes());
    // After the credit shrinks, the excess must return first.
    if (queue_->outstanding_bytes() <= credit_) allowed_ = credit_;
    ASSERT_LE(queue_->outstanding_bytes(), std::max(allowed_, largest_));
    ASSERT_EQ(queue_->waiting(), naive_->waiting().size());
  }

  void Drain() {
    while (queue_->waiting() > 0) {
      ASSERT_NO_FATAL_FAILURE(Leave());
      CheckCredit();
      for (Partition& part : parts_) {
        if (!part.committed && queue_->IsOutstanding(part.ticket) && random_() % 2 == 0) {
          Received(part);
        }
      }
    }
    for (Partition& part : parts_) {
      if (!part.committed) Committed(part);
      EXPECT_GE(part.left, 1) << "lost";
      // Less urgent partitions may be ahead of it only if they left before it arrived.
      if (GetParam().by_priority && !GetParam().whole_blocks) {
        EXPECT_EQ(part.lower_left_since, 0u);
      }
    }
    EXPECT_EQ(queue_->outstanding_bytes(), 0u);
    EXPECT_EQ(queue_->waiting(), 0u);
    EXPECT_LE(queue_->most_outstanding_bytes(), std::max(largest_credit_, largest_));
  }

  std::mt19937 random_;
  uint64_t credit_ = 0;
  uint64_t largest_credit_ = 0;
  uint64_t allowed_ = 0;  // limit on outstanding bytes
  uint64_t largest_ = 0;
  std::vector<Partition> parts_;  // by item
  std::optional<CreditQueue> queue_;
  std::optional<NaiveQueue> naive_;
};

TEST_P(CreditQueueProperties, LosesNothingSendsNothingTwiceAndKeepsOrderAndCredit) {
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Run(seed);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, CreditQueueProperties, testing::ValuesIn(kSchedulingPolicies),
                         [](const auto& policy) {
                           return CommConfig::Scheduler_Name(policy.param.name);
                         });

}  // namespace
}  // namespace tug
