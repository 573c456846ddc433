// SPDX-License-Identifier: Apache-2.0
#include "server/sums/sum_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/job_config.h"
#include "server/sums/push_frames_test_support.h"

namespace tug {
namespace {

constexpr uint64_t kElements = 33;

std::vector<std::vector<float>> Contributions(uint32_t leaves, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<std::vector<float>> data(leaves, std::vector<float>(kElements));
  for (auto& leaf : data) {
    for (float& x : leaf) x = normal(random) * std::exp(3 * normal(random));
  }
  return data;
}

std::vector<float> Plus(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// Definition of the sum: split at the largest power of two below the width.
std::vector<float> TreeSum(const std::vector<std::vector<float>>& data, uint32_t first,
                           uint32_t count) {
  if (count == 1) return data[first];
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  return Plus(TreeSum(data, first, left), TreeSum(data, first + left, count - left));
}

// Form of a contribution: in the lane's own memory, or in its sender's (which must not change);
// FP32 or encoded. "Passing": in the sender's memory, where it does not stay.
enum class As { kOwn, kSenders, kEncoded, kSendersEncoded, kPassing, kPassingEncoded };
constexpr As kAllWays[] = {As::kOwn,     As::kSenders,       As::kEncoded, As::kSendersEncoded,
                           As::kPassing, As::kPassingEncoded};

bool IsEncoded(As as) {
  return as == As::kEncoded || as == As::kSendersEncoded || as == As::kPassingEncoded;
}
bool IsOwn(As as) { return as == As::kOwn || as == As::kEncoded; }
bool Stays(As as) { return as != As::kPassing && as != As::kPassingEncoded; }

// A contribution; `data` must be exact in bf16.
Contribution Arriving(const std::vector<float>& data, As as) {
  const uint8_t id = IsEncoded(as) ? kBf16Frame : kFp32Frame;
  const Lease payload = LeaseOf(EncodeFrames(data, data.size(), {id}));
  std::span<const std::byte> bytes = payload.bytes();
  const Frame frame = *TakeFrame(data.size(), bytes);
  return {.payload = payload.Slice(kFrameHeaderBytes, frame.encoding.size()),
          .codec = frame.codec,
          .finite = frame.finite,
          .writable = IsOwn(as),
          .stays = Stays(as)};
}

// Overwrites a payload in its sender's memory.
void Overwrite(const Lease& payload) {
  const std::span<const std::byte> bytes = payload.bytes();
  std::fill_n(const_cast<std::byte*>(bytes.data()), bytes.size(), std::byte{0x7f});
}

// Rounds FP32 numbers to exact bf16.
void Round(std::vector<float>& data) {
  for (float& x : data) x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xffff0000u);
}

std::vector<uint32_t> Bits(std::span<const float> floats) {
  std::vector<uint32_t> bits;
  for (const float x : floats) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

void Add(SumTree& tree, uint32_t first, uint32_t count, const std::vector<float>& data) {
  tree.Add(first, count, Arriving(data, As::kOwn));
}

std::vector<float> Sum(const SumTree& tree) { return {tree.sum().begin(), tree.sum().end()}; }

TEST(SumTree, HasTheSameBitsInEveryOrderOfArrival) {
  for (uint32_t leaves : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u}) {
    const auto data = Contributions(leaves, leaves);
    const std::vector<float> expected = TreeSum(data, 0, leaves);
    BufferPool pool;
    SumTree tree(leaves, kElements, pool);
    std::vector<uint32_t> order(leaves);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(17);
    for (int trial = 0; trial < 20; ++trial) {
      std::shuffle(order.begin(), order.end(), random);
      for (uint32_t leaf : order) {
        EXPECT_FALSE(tree.complete());
        Add(tree, leaf, 1, data[leaf]);
      }
      ASSERT_TRUE(tree.complete());
      EXPECT_EQ(Sum(tree), expected) << leaves << " leaves, trial " << trial;
      tree.Clear();
    }
  }
}

TEST(SumTree, HasTheSameBitsWhereverItsPartsLieAndForetellsItsMemory) {
  std::mt19937 random(20261122);
  for (const uint64_t elements : {kElements, uint64_t{12000}}) {  // copied; kept in place
    for (uint32_t leaves = 1; leaves <= 9; ++leaves) {
      std::vector<std::vector<float>> data = Contributions(leaves, leaves);
      for (auto& leaf : data) {
        leaf.resize(elements, 0.75f);
        leaf[1] = -0.0f;
        Round(leaf);
      }
      const std::vector<float> expected = TreeSum(data, 0, leaves);
      BufferPool pool;
      SumTree tree(leaves, elements, pool);
      std::vector<uint32_t> order(leaves);
      std::iota(order.begin(), order.end(), 0);
      for (int trial = 0; trial < 60; ++trial) {
        std::shuffle(order.begin(), order.end(), random);
        std::vector<std::pair<Lease, std::vector<std::byte>>> in_senders_memory;
        for (uint32_t leaf : order) {
          const As as = kAllWays[trial % 5 < 3 ? random() % 6 : random() % 2];
          const Contribution part = Arriving(data[leaf], as);
          // A contribution that is the whole sum is decoded.
          const bool own = part.writable || !part.stays || (leaves == 1 && IsEncoded(as));
          const uint32_t after = tree.OwnAfter(leaf, 1, own);
          if (!part.writable && part.stays) {
            const std::span<const std::byte> bytes = part.payload.bytes();
            in_senders_memory.emplace_back(part.payload,
                                           std::vector<std::byte>(bytes.begin(), bytes.end()));
          }
          tree.Add(leaf, 1, part);
          if (!part.stays) Overwrite(part.payload);
          EXPECT_EQ(tree.own_nodes(), after);
          EXPECT_EQ(pool.used_bytes(), after * elements * sizeof(float));
        }
        ASSERT_TRUE(tree.complete());
        EXPECT_EQ(tree.MissingBefore(leaves), 0u);
        ASSERT_EQ(Bits(tree.sum()), Bits(expected)) << leaves << " leaves, trial " << trial;
        EXPECT_EQ(tree.first_not_finite(), SumTree::kNone);
        tree.Clear();
        EXPECT_EQ(pool.used_bytes(), 0u);
        for (const auto& [lease, before] : in_senders_memory) {
          EXPECT_TRUE(std::ranges::equal(lease.bytes(), before)) << "written";
        }
      }
    }
  }
}

TEST(SumTree, FindsWhatIsNotFiniteWhereverItLies) {
  for (const uint64_t elements : {kElements, uint64_t{12000}}) {
    for (As first : kAllWays) {
      for (As second : kAllWays) {
        for (uint32_t bad : {0u, 1u}) {
          BufferPool pool;
          SumTree tree(2, elements, pool);
          std::vector<std::vector<float>> data(2, std::vector<float>(elements, 1.0f));
          data[bad].back() = -std::numeric_limits<float>::infinity();
          tree.Add(0, 1, Arriving(data[0], first));
          tree.Add(1, 1, Arriving(data[1], second));
          EXPECT_EQ(tree.first_not_finite(), bad);
        }
      }
    }
  }
}

TEST(SumTree, NamesTheFirstThatIsNotFiniteInEveryOrderOfArrival) {
  std::mt19937 random(20261123);
  for (uint32_t leaves = 1; leaves <= 9; ++leaves) {
    BufferPool pool;
    SumTree tree(leaves, kElements, pool);
    std::vector<uint32_t> order(leaves);
    std::iota(order.begin(), order.end(), 0);
    for (int trial = 0; trial < 60; ++trial) {
      std::vector<Contribution> parts;
      uint32_t first_bad = SumTree::kNone;
      for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
        std::vector<float> data(kElements, 1.0f + static_cast<float>(leaf));
        const uint32_t fault = random() % 6;
        if (fault == 0) data[leaf] = std::numeric_limits<float>::quiet_NaN();
        parts.push_back(Arriving(data, kAllWays[random() % 4]));
        const bool undecodable = fault == 1 && parts.back().codec != 0;
        if (undecodable) parts.back().payload = parts.back().payload.Slice(0, kElements);
        if (fault == 0 || undecodable) first_bad = std::min(first_bad, leaf);
      }
      std::shuffle(order.begin(), order.end(), random);
      for (const uint32_t leaf : order) tree.Add(leaf, 1, parts[leaf]);
      ASSERT_EQ(tree.first_not_finite(), first_bad) << leaves << " leaves, trial " << trial;
      if (first_bad == SumTree::kNone) {
        ASSERT_EQ(Sum(tree)[0], static_cast<float>(leaves * (leaves + 1) / 2));
      }
      tree.Clear();
      EXPECT_EQ(pool.used_bytes(), 0u);
    }
  }
}

TEST(SumTree, TakesFramesThatAreNotFiniteForZeros) {
  const std::vector<float> ones(kElements, 1.0f);
  std::vector<float> bad = ones;
  bad[7] = std::numeric_limits<float>::infinity();
  for (const As as : {As::kEncoded, As::kSendersEncoded}) {
    for (const As other : kAllWays) {
      for (const bool bad_first : {false, true}) {
        BufferPool pool;
        SumTree tree(2, kElements, pool);
        if (bad_first) tree.Add(0, 1, Arriving(bad, as));
        tree.Add(1, 1, Arriving(ones, other));
        if (!bad_first) tree.Add(0, 1, Arriving(bad, as));
        EXPECT_EQ(tree.first_not_finite(), 0u);
        EXPECT_EQ(Sum(tree), ones);
      }
    }
    BufferPool pool;
    SumTree alone(1, kElements, pool);
    alone.Add(0, 1, Arriving(bad, as));
    EXPECT_EQ(alone.first_not_finite(), 0u);
    EXPECT_EQ(Sum(alone), std::vector<float>(kElements, 0.0f));
  }
}

TEST(SumTree, HoldsAnEncodedPushUntilItsSiblingComes) {
  constexpr uint64_t kMany = 12000;
  const std::vector<float> data(kMany, 2.0f);
  BufferPool pool;
  SumTree tree(2, kMany, pool);
  tree.Add(1, 1, Arriving(data, As::kSendersEncoded));
  EXPECT_EQ(pool.total_bytes(), 0u);  // neither copied nor decoded
  tree.Add(0, 1, Arriving(data, As::kOwn));
  EXPECT_EQ(pool.total_bytes(), kMany * sizeof(float));  // added in that one's memory
  EXPECT_EQ(Sum(tree), std::vector<float>(kMany, 4.0f));
}

// Tests every codec with its default settings, and zeros of both signs next to sparse
// contributions.
TEST(SumTree, HasTheSameBitsInEveryOrderOfArrivalWithEveryCodec) {
  std::mt19937 random(20261124);
  CodecScratch scratch;
  for (const CodecRow& row : Codecs()) {
    const std::vector<std::string> overrides = {"data.path=text", "optimizer.algorithm=SGD",
                                                "optimizer.sgd.momentum=0",  // required by dgc
                                                std::string("comm.push_codec.") + row.name + "={}"};
    const auto config = ParseJobConfig("", "test", overrides);
    ASSERT_TRUE(config.ok()) << config.status();
    const auto codec = MakeCodec(config->comm().push_codec());
    for (uint32_t leaves = 1; leaves <= 9; ++leaves) {
      const auto data = Contributions(leaves, leaves);
      std::vector<std::vector<std::byte>> payloads(leaves);
      for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
        std::vector<float> elements = data[leaf];
        for (size_t i = 0; i < elements.size(); i += 3) elements[i] = -0.0f;
        const bool fp32 = random() % 3 == 0;
        std::vector<std::byte>& frame = payloads[leaf];
        frame.resize(MaxFrameBytes(fp32 ? nullptr : codec.get(), elements.size()));
        frame.resize(WriteFrame(fp32 ? kFp32Frame : static_cast<uint8_t>(row.id),
                                fp32 ? nullptr : codec.get(), {.seed = 7, .virtual_worker = leaf},
                                elements, {}, frame, scratch));
      }
      BufferPool pool;
      SumTree tree(leaves, kElements, pool);
      std::vector<uint32_t> order(leaves);
      std::iota(order.begin(), order.end(), 0);
      std::vector<uint32_t> expected;
      for (int trial = 0; trial < 40; ++trial) {
        for (const uint32_t leaf : order) {
          const Lease payload = LeaseOf(payloads[leaf]);
          std::span<const std::byte> bytes = payload.bytes();
          const Frame frame = *TakeFrame(kElements, bytes);
          tree.Add(leaf, 1,
                   {.payload = payload.Slice(kFrameHeaderBytes, frame.encoding.size()),
                    .codec = frame.codec,
                    .finite = frame.finite,
                    .writable = random() % 2 == 0});
        }
        EXPECT_EQ(tree.first_not_finite(), SumTree::kNone);
        if (trial == 0) expected = Bits(tree.sum());
        ASSERT_EQ(Bits(tree.sum()), expected) << row.name << ", " << leaves << " leaves";
        tree.Clear();
        std::shuffle(order.begin(), order.end(), random);
      }
    }
  }
}

TEST(SumTree, TakesAlignedGroupsWithoutChangingABit) {
  for (uint32_t leaves : {2u, 3u, 6u, 8u, 11u}) {
    const auto data = Contributions(leaves, 100 + leaves);
    BufferPool pool;
    for (uint32_t group = 2; group <= 8; group *= 2) {
      SumTree tree(leaves, kElements, pool);
      for (uint32_t first = 0; first < leaves; first += group) {
        const uint32_t count = std::min(group, leaves - first);
        ASSERT_TRUE(SumTree::IsNode(leaves, first, count));
        Add(tree, first, count, TreeSum(data, first, count));
      }
      ASSERT_TRUE(tree.complete());
      EXPECT_EQ(Sum(tree), TreeSum(data, 0, leaves)) << leaves << " leaves by " << group;
    }
  }
}

// Definition of a partial sum: a subtree without any of the leaves is left out.
std::optional<std::vector<float>> SumOfSome(const std::vector<std::vector<float>>& data,
                                            const std::vector<bool>& some, uint32_t first,
                                            uint32_t count) {
  if (count == 1) return some[first] ? std::optional(data[first]) : std::nullopt;
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  const auto a = SumOfSome(data, some, first, left);
  const auto b = SumOfSome(data, some, first + left, count - left);
  if (a.has_value() && b.has_value()) return Plus(*a, *b);
  return a.has_value() ? a : b;
}

TEST(SumTree, SumsSomeOfItsLeavesAlongTheSameTreeInAnyOrderOnceSealed) {
  std::mt19937 random(7);
  for (uint32_t leaves = 1; leaves <= 13; ++leaves) {
    auto data = Contributions(leaves, leaves);
    for (auto& leaf : data) Round(leaf);
    BufferPool pool;
    SumTree tree(leaves, kElements, pool);
    std::vector<uint32_t> order(leaves);
    std::iota(order.begin(), order.end(), 0);
    for (int trial = 0; trial < 100; ++trial) {
      std::shuffle(order.begin(), order.end(), random);
      std::vector<bool> some(leaves, false);
      const uint32_t count = 1 + static_cast<uint32_t>(random() % leaves);
      for (uint32_t i = 0; i < count; ++i) {
        some[order[i]] = true;
        tree.Add(order[i], 1, Arriving(data[order[i]], kAllWays[random() % 4]));
      }
      EXPECT_EQ(tree.complete(), count == leaves);
      EXPECT_EQ(tree.MissingBefore(leaves), leaves - count);
      tree.Seal();
      ASSERT_TRUE(tree.complete());
      EXPECT_LE(tree.own_nodes(), 1u);
      ASSERT_EQ(Sum(tree), *SumOfSome(data, some, 0, leaves)) << leaves << ", trial " << trial;
      tree.Clear();
      EXPECT_FALSE(tree.complete());
      EXPECT_EQ(pool.used_bytes(), 0u);
    }
  }
}

TEST(SumTree, AcceptsOnlySubtreesAsGroups) {
  EXPECT_TRUE(SumTree::IsNode(6, 0, 4));
  EXPECT_TRUE(SumTree::IsNode(6, 4, 2));
  EXPECT_TRUE(SumTree::IsNode(6, 0, 6));
  EXPECT_FALSE(SumTree::IsNode(6, 1, 2));
  EXPECT_FALSE(SumTree::IsNode(6, 0, 3));
  EXPECT_FALSE(SumTree::IsNode(6, 2, 4));
  EXPECT_FALSE(SumTree::IsNode(6, 6, 1));
  EXPECT_FALSE(SumTree::IsNode(6, 0, 0));
  EXPECT_FALSE(SumTree::IsNode(6, 4, 0xffffffffu));
}

TEST(SumTree, KnowsWhatItHasAndNamesTheFirstThatIsNotFinite) {
  BufferPool pool;
  SumTree tree(3, kElements, pool);
  std::vector<float> bad(kElements, 1.0f);
  bad[32] = std::numeric_limits<float>::quiet_NaN();
  Add(tree, 2, 1, bad);
  EXPECT_TRUE(tree.Covers(2, 1));
  EXPECT_FALSE(tree.Covers(0, 2));
  EXPECT_EQ(tree.first_not_finite(), 2u);
  bad[32] = std::numeric_limits<float>::infinity();
  Add(tree, 1, 1, bad);
  EXPECT_EQ(tree.first_not_finite(), 1u);
  tree.Clear();
  EXPECT_FALSE(tree.Covers(2, 1));
  EXPECT_EQ(tree.first_not_finite(), SumTree::kNone);
}

}  // namespace
}  // namespace tug
