// SPDX-License-Identifier: Apache-2.0
// A lane's memory: for any order of pushes, sums stay within their bound, all clocks close with the
// same bits, and nothing stalls.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "server/shard/shard.h"
#include "server/sums/push_frames_test_support.h"

namespace tug {
namespace {

constexpr uint32_t kBlocks = 2;
constexpr uint32_t kSegments = 4;           // per block
constexpr uint32_t kPartitionSegments = 2;  // per push
constexpr uint64_t kClocks = 3;
constexpr uint32_t kLane = 300;

struct Case {
  uint32_t virtual_workers = 1;
  uint64_t segment_elements = 4096;
  uint64_t parking_bytes = 0;
  OptimizerConfig::Clip clip = OptimizerConfig::OFF;
  bool frames = false;  // most pushes are encoded, in half of their segments
};

SegmentTable Table(uint64_t segment_elements) {
  BlockTable blocks;
  for (uint32_t b = 0; b < kBlocks; ++b) {
    blocks.add_blocks()->add_tensors()->add_shape(kSegments * segment_elements - 5 * b);
  }
  return *SegmentTable::Create(blocks, segment_elements);
}

ShardOptions Options(const Case& c) {
  ShardOptions options;
  options.lane = kLane;
  options.job = 9;
  options.virtual_workers = c.virtual_workers;
  options.optimizer.set_learning_rate(0.1);
  options.optimizer.set_min_learning_rate(0.1);
  options.optimizer.set_decay_steps(10);
  options.optimizer.set_clip(c.clip);
  options.optimizer.set_clip_norm(1.0);
  options.optimizer.mutable_adamw()->set_beta1(0.9);
  options.optimizer.mutable_adamw()->set_beta2(0.99);
  options.optimizer.mutable_adamw()->set_epsilon(1e-8);
  options.lane_of_segment.assign(kBlocks * kSegments, kLane);
  options.block_names = {"first", "second"};
  options.parking_bytes = c.parking_bytes;
  return options;
}

// All workers of a job and one lane, without time: a push waits here until it is delivered.
class Workers {
 public:
  Workers(const Case& c, uint32_t seed)
      : case_(c),
        table_(Table(c.segment_elements)),
        random_(seed),
        shard_(Options(c), table_,
               {.send = [this](Outgoing m) { OnAnswer(m.header); },
                .snapshot = [](const SegmentSnapshot&) {},
                .notice = [](const ShardNotice& n) { ADD_FAILURE() << n.text; }}) {}

  // Delivers every push of a clock in the order of `rank`, as far as they are not deferred.
  template <typename Rank>
  void RunClock(uint64_t clock, Rank rank) {
    pushes_.clear();
    for (uint32_t block = 0; block < kBlocks; ++block) {
      for (uint32_t first = 0; first < kSegments; first += kPartitionSegments) {
        for (uint32_t vw = 0; vw < case_.virtual_workers; ++vw) {
          pushes_.push_back({Header(block, first, vw, clock)});
        }
      }
    }
    std::shuffle(pushes_.begin(), pushes_.end(), random_);
    std::stable_sort(pushes_.begin(), pushes_.end(),
                     [&](const Push& a, const Push& b) { return rank(a.header) < rank(b.header); });
    while (Push* next = Next()) {
      next->state = State::kUnderWay;
      if (!next->announced && !next->wanted && random_() % 3 == 0) {
        next->announced = true;
        shard_.OnMessage({next->header, Lease()}, now_);  // header only
        continue;
      }
      Deliver(next->header);
      if (random_() % 4 == 0) Deliver(pushes_[random_() % pushes_.size()].header);  // a repeat
    }
    for (uint32_t id = 0; id < table_.size(); ++id) {
      ASSERT_EQ(shard_.version(id), clock + 1) << "stands still";
    }
  }

  std::vector<float> Weights() {
    std::vector<float> all;
    for (uint32_t id = 0; id < table_.size(); ++id) {
      const std::span<const float> part = shard_.weights(id);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  const ShardCounters& counters() const { return shard_.counters(); }

 private:
  enum class State { kToSend, kUnderWay, kDeferred, kDone };
  struct Push {
    WireHeader header;
    State state = State::kToSend;
    bool announced = false;
    bool wanted = false;
  };

  static WireHeader Header(uint32_t block, uint32_t first, uint32_t vw, uint64_t clock) {
    WireHeader header;
    header.job = 9;
    header.block = block;
    header.first_segment = first;
    header.segment_count = kPartitionSegments;
    header.virtual_worker = vw;
    header.virtual_worker_count = 1;
    header.clock = clock;
    header.token_count = 7;
    header.sender = WorkerPeer(vw / 2);
    return header;
  }

  Push* Next() {
    for (Push& push : pushes_) {
      if (push.state == State::kToSend) return &push;
    }
    return nullptr;
  }

  void Deliver(const WireHeader& header) {
    const uint32_t first = table_.id(header.block, header.first_segment);
    const uint64_t elements =
        table_.segment(first + kPartitionSegments - 1).end - table_.segment(first).begin;
    auto gradient = std::make_shared<std::vector<float>>(elements);
    std::mt19937 random(static_cast<uint32_t>(header.virtual_worker + 100 * first +
                                              10000 * static_cast<uint32_t>(header.clock)));
    const float scale = static_cast<float>(random() % 1000) * 1e-2f;
    for (uint64_t i = 0; i < elements; ++i) {
      (*gradient)[i] = scale * (static_cast<float>((i * 2654435761u) % 1000u) * 1e-3f - 0.5f);
    }
    const Home home = header.virtual_worker % 3 == 1 ? Home::kSender : Home::kReceiver;
    WireHeader push = header;
    Lease payload(gradient, std::span<const float>(*gradient));
    if (case_.frames && random() % 4 != 0) {
      push.codec = Codec::kFrames;
      payload = LeaseOf(EncodeFrames(*gradient, case_.segment_elements, {kBf16Frame, kFp32Frame}));
    }
    const std::vector<std::byte> before(payload.bytes().begin(), payload.bytes().end());
    shard_.OnMessage({push, payload, home}, now_);
    if (home == Home::kSender) {
      EXPECT_TRUE(std::ranges::equal(payload.bytes(), before)) << "written in its sender's memory";
    }
    CheckBound();
  }

  void OnAnswer(const WireHeader& answer) {
    for (Push& push : pushes_) {
      const WireHeader& h = push.header;
      if (h.block != answer.block || h.first_segment != answer.first_segment ||
          h.virtual_worker != answer.virtual_worker || h.clock != answer.clock) {
        continue;
      }
      switch (answer.kind) {
        case MessageKind::kReceived:
        case MessageKind::kCommitted:
          push.state = State::kDone;
          break;
        case MessageKind::kDeferred:
          EXPECT_FALSE(push.wanted) << "asked for, and not taken";
          if (push.state != State::kDone) push.state = State::kDeferred;
          break;
        case MessageKind::kPushWanted:
          EXPECT_NE(push.state, State::kDone) << "asked for again";
          push.state = State::kToSend;
          push.wanted = true;
          break;
        default:
          ADD_FAILURE() << "unexpected answer";
      }
      return;
    }
  }

  void CheckBound() {
    const uint64_t segment = case_.segment_elements * sizeof(float);
    const uint64_t levels = std::bit_width(case_.virtual_workers - 1);
    ASSERT_LE(shard_.held_bytes(), kBlocks * kSegments * segment + case_.parking_bytes +
                                       (levels + 2) * kPartitionSegments * segment);
  }

  const Case case_;
  const SegmentTable table_;
  std::mt19937 random_;
  const absl::Time now_ = absl::UnixEpoch();
  std::vector<Push> pushes_;
  Shard shard_;
};

TEST(ShardMemory, ClosesWithTheSameBitsWithinItsBoundInEveryOrderOfArrival) {
  uint64_t deferred = 0;
  for (const auto clip : {OptimizerConfig::OFF, OptimizerConfig::GLOBAL}) {
    for (const uint64_t segment_elements : {uint64_t{1024}, uint64_t{8192}}) {
      for (uint32_t virtual_workers = 1; virtual_workers <= 9; ++virtual_workers) {
        Case c{virtual_workers, segment_elements, uint64_t{1} << 30, clip,
               virtual_workers % 2 == 0};
        Workers in_order(c, 0);
        for (uint64_t clock = 0; clock < kClocks; ++clock) {
          in_order.RunClock(clock, [](const WireHeader& h) { return h.virtual_worker; });
        }
        EXPECT_EQ(in_order.counters().deferred, 0u);
        const std::vector<float> expected = in_order.Weights();
        for (uint32_t seed = 1; seed <= 6; ++seed) {
          c.parking_bytes = seed % 3 * 2 * kPartitionSegments * segment_elements * sizeof(float);
          Workers shuffled(c, seed);
          for (uint64_t clock = 0; clock < kClocks; ++clock) {
            // Some seeds push all even virtual workers first: the worst case for a binary tree.
            shuffled.RunClock(clock, [&](const WireHeader& h) {
              return seed % 2 == 0 ? h.virtual_worker % 2 : 0u;
            });
            if (testing::Test::HasFatalFailure()) return;
          }
          ASSERT_EQ(shuffled.Weights(), expected)
              << virtual_workers << " virtual workers, seed " << seed;
          deferred += shuffled.counters().deferred;
        }
      }
    }
  }
  EXPECT_GT(deferred, 0u);
}

TEST(ShardMemory, LetsTheLastBlocksFillItAndStillClosesTheFirst) {
  for (const uint32_t virtual_workers : {4u, 7u, 9u}) {
    Workers workers({virtual_workers, 8192, 3 * 8192 * sizeof(float), OptimizerConfig::GLOBAL,
                     virtual_workers == 7},
                    5);
    for (uint64_t clock = 0; clock < kClocks; ++clock) {
      workers.RunClock(clock, [](const WireHeader& h) {
        return 100 - 50 * static_cast<int>(h.block) - static_cast<int>(h.virtual_worker);
      });
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(workers.counters().deferred, 0u);
  }
}

}  // namespace
}  // namespace tug
