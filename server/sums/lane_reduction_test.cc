// SPDX-License-Identifier: Apache-2.0
// Lanes without a network: the test delivers their messages, in any order, and sets the time.

#include "server/sums/lane_reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "blocks/view_lanes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kSegment = 1024;
constexpr uint32_t kServers[] = {3, 7, 5, 9};  // by rank

SegmentTable Table() {
  BlockTable blocks;
  for (const uint64_t elements : {3 * kSegment, kSegment + 17, 2 * kSegment}) {
    blocks.add_blocks()->add_tensors()->add_shape(elements);
  }
  return *SegmentTable::Create(blocks, kSegment);
}

// Whole numbers, so that the order of summing does not matter; small, so that all formats are
// exact.
float Element(uint32_t rank, uint32_t segment, uint64_t clock, uint64_t i) {
  return static_cast<float>((rank + 2 * segment + 3 * clock + 5 * i) % 16);
}

class LaneReductionTest : public ::testing::Test {
 protected:
  struct Packet {
    uint32_t from;
    Outgoing outgoing;
  };

  void Open(uint32_t world, CollectiveConfig::Format format = CollectiveConfig::FP32) {
    LaneReduction::Options options;
    for (uint32_t rank = 0; rank < world; ++rank) {
      options.group.peers.push_back(LanePeer(LaneNumber(kServers[rank], 0)));
      options.group.names.push_back(absl::StrCat("server-", rank));
    }
    options.group.job = 77;
    options.group.group = 1;
    options.group.chunk_bytes = 1 << 10;
    options.group.timeout = absl::Seconds(8);
    options.group.patience = absl::Minutes(5);
    options.collective.set_format(format);
    reduced_.resize(world);
    sums_.resize(world);
    for (uint32_t rank = 0; rank < world; ++rank) {
      options.group.rank = rank;
      LaneReduction::Sinks sinks;
      sinks.group.send = [this, rank](Outgoing outgoing) {
        packets_.push_back({rank, std::move(outgoing)});
      };
      sinks.group.wake = [] {};
      sinks.reduced = [this, rank](const LaneReduction::Reduced& reduced) {
        EXPECT_FALSE(reduced_[rank].contains(reduced.segment));
        reduced_[rank][reduced.segment] = reduced.facts;
      };
      lanes_.push_back(std::make_unique<LaneReduction>(options, table_, std::move(sinks)));
    }
  }

  void Offer(uint32_t rank, uint32_t segment, uint64_t clock, SumFacts facts = {.tokens = 1},
             std::optional<float> first = std::nullopt) {
    std::vector<float> sum(table_.segment(segment).elements());
    for (uint64_t i = 0; i < sum.size(); ++i) sum[i] = Element(rank, segment, clock, i);
    if (first.has_value()) sum[0] = *first;
    sums_[rank][segment] = lanes_[rank]->Offer(segment, sum, facts, now_);
  }

  // Offers each lane's segments in a random order.
  void OfferAll(uint64_t clock) {
    for (uint32_t rank = 0; rank < lanes_.size(); ++rank) {
      std::vector<uint32_t> ids(table_.size());
      for (uint32_t id = 0; id < ids.size(); ++id) ids[id] = id;
      std::shuffle(ids.begin(), ids.end(), random_);
      for (const uint32_t id : ids) Offer(rank, id, clock, {.tokens = 100 * rank + id});
    }
  }

  // Delivers all messages in flight, in any order, except to and from `dead`, until none is left.
  void Pump(std::optional<uint32_t> dead = std::nullopt) {
    bool busy = true;
    while (busy) {
      busy = !packets_.empty();
      if (busy) {
        std::swap(packets_[random_() % packets_.size()], packets_.back());
        Packet packet = std::move(packets_.back());
        packets_.pop_back();
        Deliver(packet, dead);
      }
      for (uint32_t rank = 0; rank < lanes_.size(); ++rank) {
        if (rank != dead && random_() % 2 == 0 && Step(rank)) busy = true;
      }
      if (packets_.empty() && !busy) busy = WorkAll(dead);
    }
  }
  bool Step(uint32_t rank) { return lanes_[rank]->Work() || lanes_[rank]->HandBackOne(now_); }
  bool WorkAll(std::optional<uint32_t> dead) {
    bool any = false;
    for (uint32_t rank = 0; rank < lanes_.size(); ++rank) {
      while (rank != dead && Step(rank)) any = true;
    }
    return any || !packets_.empty();
  }
  void Deliver(const Packet& packet, std::optional<uint32_t> dead) {
    const auto to = static_cast<uint32_t>(
        std::find_if(std::begin(kServers), std::end(kServers),
                     [&](uint32_t s) { return LanePeer(LaneNumber(s, 0)) == packet.outgoing.to; }) -
        std::begin(kServers));
    ASSERT_LT(to, lanes_.size());
    if (dead.has_value() && (packet.from == *dead || to == *dead)) return;
    const std::span<const std::byte> bytes = packet.outgoing.payload.bytes();
    const auto memory = std::make_shared<AlignedBuffer>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), memory->data());
    Message message{
        packet.outgoing.header,
        Lease(memory, std::span<const std::byte>(memory->data(), memory->size_bytes()))};
    message.header.sender = LanePeer(LaneNumber(kServers[packet.from], 0));
    message.header.payload_bytes = bytes.size();
    EXPECT_TRUE(LaneReduction::IsFor(message.header.kind));
    lanes_[to]->OnMessage(std::move(message), now_);
  }

  void PassTime(absl::Duration time, std::optional<uint32_t> dead) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ += absl::Milliseconds(100);
      for (uint32_t rank = 0; rank < lanes_.size(); ++rank) {
        if (rank != dead) lanes_[rank]->OnTick(now_);
      }
      Pump(dead);
    }
  }

  void ExpectSum(uint32_t rank, uint32_t segment, uint64_t clock) {
    const std::span<const float> sum = sums_[rank][segment].floats();
    ASSERT_EQ(sum.size(), table_.segment(segment).elements());
    for (uint64_t i = 0; i < sum.size(); ++i) {
      float expected = 0;
      for (uint32_t r = 0; r < lanes_.size(); ++r) expected += Element(r, segment, clock, i);
      ASSERT_EQ(sum[i], expected) << "rank " << rank << " segment " << segment << " at " << i;
    }
  }

  const SegmentTable table_ = Table();
  const uint32_t seed_ = std::random_device()();
  std::mt19937 random_{seed_};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::vector<Packet> packets_;
  std::vector<std::unique_ptr<LaneReduction>> lanes_;
  std::vector<std::map<uint32_t, SumFacts>> reduced_;  // by rank, at this clock
  std::vector<std::map<uint32_t, Lease>> sums_;        // by rank and segment
};

TEST_F(LaneReductionTest, SumsForAnyOrderOfLocalSums) {
  for (const auto format :
       {CollectiveConfig::FP32, CollectiveConfig::BF16, CollectiveConfig::FP16}) {
    for (const uint32_t world : {1u, 2u, 3u, 4u}) {
      SCOPED_TRACE(std::to_string(world) + " lanes, " + CollectiveConfig::Format_Name(format));
      lanes_.clear();
      packets_.clear();
      Open(world, format);
      for (uint64_t clock = 0; clock < 3; ++clock) {
        for (auto& reduced : reduced_) reduced.clear();
        OfferAll(clock);
        Pump();
        for (uint32_t rank = 0; rank < world; ++rank) {
          ASSERT_EQ(reduced_[rank].size(), table_.size());
          for (uint32_t id = 0; id < table_.size(); ++id) {
            EXPECT_EQ(reduced_[rank][id].tokens, 50 * world * (world - 1) + world * id);
            EXPECT_EQ(reduced_[rank][id].bad_virtual_worker, SumFacts::kAllFinite);
            ExpectSum(rank, id, clock);
          }
        }
      }
      EXPECT_GE(lanes_[0]->buffer_bytes(),
                (6 * kSegment + 17) * (format == CollectiveConfig::FP32 ? 4 : 6));
    }
  }
}

TEST_F(LaneReductionTest, BeginsWithTheLastBlock) {
  Open(2);
  const uint32_t last = table_.first_of_block(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (uint32_t id = 0; id < last; ++id) Offer(rank, id, 0);
  }
  Pump();
  EXPECT_TRUE(reduced_[0].empty()) << "others wait for their turn";
  EXPECT_TRUE(lanes_[0]->algorithms().empty()) << "none has begun";
  for (uint32_t rank = 0; rank < 2; ++rank) Offer(rank, last, 0);
  Pump();
  EXPECT_EQ(reduced_[0].size(), 1u);
  for (uint32_t rank = 0; rank < 2; ++rank) Offer(rank, last + 1, 0);
  Pump();
  EXPECT_EQ(reduced_[0].size(), table_.size());
  EXPECT_EQ(reduced_[1].size(), table_.size());
  EXPECT_EQ(lanes_[0]->algorithms(), std::vector<std::string>{"recursive_doubling"});
}

TEST_F(LaneReductionTest, AllLanesKnowWhoseGradientIsNotFinite) {
  Open(3);
  const uint32_t last = table_.first_of_block(2);
  const float infinity = std::numeric_limits<float>::infinity();
  Offer(0, last, 0, {.tokens = 5});
  Offer(1, last, 0, {.tokens = 6, .bad_virtual_worker = 4}, infinity);
  Offer(2, last, 0, {.tokens = 7, .bad_virtual_worker = 9}, -infinity);
  Pump();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(reduced_[rank].at(last), (SumFacts{18, 4}));
    EXPECT_TRUE(std::isnan(sums_[rank][last].floats()[0]));
  }
}

TEST_F(LaneReductionTest, ALaneThatIsAwayForLongIsWaitedFor) {
  Open(3);
  const uint32_t last = table_.first_of_block(2);
  Offer(0, last, 0);
  Offer(1, last, 0);
  PassTime(absl::Minutes(4), std::nullopt);
  EXPECT_TRUE(lanes_[0]->status().ok()) << lanes_[0]->status();
  Offer(2, last, 0);
  Pump();
  for (uint32_t rank = 0; rank < 3; ++rank) ExpectSum(rank, last, 0);
}

TEST_F(LaneReductionTest, TheLossOfALaneEndsAllAndNamesItsServer) {
  Open(4);
  const uint32_t last = table_.first_of_block(2);
  for (uint32_t rank = 0; rank < 4; ++rank) Offer(rank, last, 0);
  // The lane has joined the collective, and sends nothing more.
  now_ += absl::Seconds(2);
  for (auto& lane : lanes_) lane->OnTick(now_);
  const auto elements = [](const Packet& packet) {
    return packet.outgoing.header.kind == MessageKind::kElements;
  };
  packets_.erase(std::remove_if(packets_.begin(), packets_.end(), elements), packets_.end());
  for (const Packet& packet : std::exchange(packets_, {})) Deliver(packet, std::nullopt);
  PassTime(absl::Seconds(8), 1);
  for (const uint32_t rank : {0u, 2u, 3u}) {
    EXPECT_EQ(lanes_[rank]->status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(lanes_[rank]->status().message()),
                AllOf(HasSubstr("without server-1: rank 1 (server-1)")));
    EXPECT_FALSE(Step(rank));
    EXPECT_TRUE(reduced_[rank].empty());
  }
}

TEST_F(LaneReductionTest, LanesWithOtherSettingsAreRefused) {
  Open(2);
  LaneReduction::Options options;
  options.group.peers = {LanePeer(LaneNumber(kServers[0], 0)),
                         LanePeer(LaneNumber(kServers[1], 0))};
  options.group.rank = 1;
  options.group.job = 77;
  options.group.group = 1;
  options.collective.set_format(CollectiveConfig::BF16);
  LaneReduction::Sinks sinks;
  sinks.group.send = [this](Outgoing outgoing) { packets_.push_back({1, std::move(outgoing)}); };
  sinks.group.wake = [] {};
  sinks.reduced = [](const LaneReduction::Reduced&) { ADD_FAILURE(); };
  lanes_[1] = std::make_unique<LaneReduction>(options, table_, std::move(sinks));
  const uint32_t last = table_.first_of_block(2);
  Offer(0, last, 0);
  Offer(1, last, 0);
  Pump();
  EXPECT_EQ(lanes_[0]->status().code(), absl::StatusCode::kInvalidArgument) << lanes_[0]->status();
  EXPECT_EQ(lanes_[1]->status().code(), absl::StatusCode::kInvalidArgument) << lanes_[1]->status();
}

}  // namespace
}  // namespace tug
