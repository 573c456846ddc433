// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "collective/schedules/grid.h"
#include "collective/schedules/ring.h"

namespace tug {
namespace {

constexpr LinkCost kGigabit{50e-6, 8e-9, 0.25e-9};
// One second per message; per byte; per summed byte.
constexpr LinkCost kMessages{1, 0, 0}, kBytes{0, 1, 0}, kSummed{0, 0, 1};

double Seconds(const char* name, const LinkCost& link, uint32_t world, uint64_t bytes,
               const AllReduceSettings& settings = {}) {
  return FindAllReduce(name)->seconds(link, world, bytes, settings);
}

std::string Picked(uint32_t world, uint64_t bytes) {
  return PickAllReduce(kGigabit, world, bytes, {}).algorithm->name;
}

TEST(AllReduceAlgorithms, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name;
    EXPECT_EQ(FindAllReduce(algorithm.name), &algorithm);
  }
  EXPECT_EQ(FindAllReduce("auto"), nullptr);
}

TEST(AllReduceAlgorithms, CostNothingForOneRank) {
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    EXPECT_EQ(algorithm.seconds(kGigabit, 1, 1 << 20, {}), 0) << algorithm.name;
  }
}

TEST(AllReduceAlgorithms, HaveTheRoundsOfTheirPapers) {
  EXPECT_EQ(Seconds("ring", kMessages, 8, 1), 14);
  EXPECT_EQ(Seconds("ring", kMessages, 6, 1), 10);
  EXPECT_EQ(Seconds("halving_doubling", kMessages, 8, 1), 6);
  EXPECT_EQ(Seconds("halving_doubling", kMessages, 6, 1), 6);
  EXPECT_EQ(Seconds("recursive_doubling", kMessages, 8, 1), 3);
  EXPECT_EQ(Seconds("recursive_doubling", kMessages, 6, 1), 4);
  EXPECT_EQ(Seconds("torus_2d", kMessages, 16, 1), 12);
  EXPECT_EQ(Seconds("torus_2d", kMessages, 7, 1), 12);  // a ring
  EXPECT_EQ(Seconds("torus_3d", kMessages, 27, 1), 12);
  EXPECT_EQ(Seconds("binary_tree", kMessages, 7, 1), 8);
  EXPECT_EQ(
      Seconds("hierarchical", kMessages, 16, 1, {.ranks_per_host = 4, .within_host = kMessages}),
      2 + 6 + 2);
}

TEST(AllReduceAlgorithms, SendAndSumTheBytesOfTheirPapers) {
  EXPECT_DOUBLE_EQ(Seconds("ring", kBytes, 8, 800), 1400);
  EXPECT_DOUBLE_EQ(Seconds("halving_doubling", kBytes, 8, 800), 1400);
  EXPECT_DOUBLE_EQ(Seconds("halving_doubling", kBytes, 6, 800), 1200 + 1600);
  EXPECT_DOUBLE_EQ(Seconds("recursive_doubling", kBytes, 8, 800), 2400);
  EXPECT_DOUBLE_EQ(Seconds("torus_2d", kBytes, 16, 1600), 3000);
  EXPECT_DOUBLE_EQ(Seconds("torus_3d", kBytes, 8, 800), 1400);
  EXPECT_DOUBLE_EQ(
      Seconds("hierarchical", kBytes, 16, 1600, {.ranks_per_host = 4, .within_host = LinkCost{}}),
      2400);
  EXPECT_DOUBLE_EQ(
      Seconds("hierarchical", kBytes, 4, 1600, {.ranks_per_host = 4, .within_host = kBytes}), 6400);
  EXPECT_DOUBLE_EQ(Seconds("ring", kSummed, 8, 800), 700);
  EXPECT_DOUBLE_EQ(Seconds("halving_doubling", kSummed, 8, 800), 700);
  EXPECT_DOUBLE_EQ(Seconds("recursive_doubling", kSummed, 8, 800), 2400);
  EXPECT_DOUBLE_EQ(Seconds("torus_2d", kSummed, 16, 1600), 1500);
}

// Two rounds each way; the last round up and the first one down overlap, except for a chunk.
TEST(AllReduceAlgorithms, BroadcastOfOneHostOverlapsWithItsReduceInChunks) {
  AllReduceSettings settings{.ranks_per_host = 4, .chunk_bytes = 100, .within_host = kBytes};
  EXPECT_DOUBLE_EQ(Seconds("hierarchical", kBytes, 4, 1600, settings), 6400 - 1500);
  EXPECT_DOUBLE_EQ(Seconds("hierarchical", kBytes, 4, 50, settings), 200);
  EXPECT_DOUBLE_EQ(Seconds("hierarchical", kBytes, 8, 1600, settings), 6400 + 1600);
}

TEST(WithBestParts, CutsLargeBuffersAndLeavesSmallOnesWhole) {
  const AllReduceAlgorithm& tree = *FindAllReduce("binary_tree");
  EXPECT_EQ(WithBestParts(tree, kGigabit, 8, 1024, {}).parts, 1u);
  const AllReduceSettings best = WithBestParts(tree, kGigabit, 8, 64 << 20, {});
  EXPECT_GT(best.parts, 16u);
  for (uint32_t parts = 1; parts <= 256; parts *= 2) {
    EXPECT_LE(tree.seconds(kGigabit, 8, 64 << 20, best),
              tree.seconds(kGigabit, 8, 64 << 20, {.parts = parts}));
  }
}

TEST(WithBestParts, LeavesAlgorithmsOfGivenPartsAtOne) {
  EXPECT_EQ(WithBestParts(*FindAllReduce("ring"), kGigabit, 8, 64 << 20, {}).parts, 1u);
}

TEST(PickAllReduce, PicksDoublingForSmallAndHalvingDoublingForLargeBuffers) {
  EXPECT_EQ(Picked(8, 1024), "recursive_doubling");
  EXPECT_EQ(Picked(8, 1 << 20), "halving_doubling");
  EXPECT_EQ(Picked(8, 64 << 20), "halving_doubling");
}

TEST(PickAllReduce, TakesRingsForLargeBuffersOfOtherWorlds) {
  EXPECT_EQ(Picked(7, 64 << 20), "ring");
  EXPECT_EQ(Picked(6, 64 << 20), "torus_2d");  // the bytes of a ring in fewer rounds
}

// Below `bytes` one algorithm is picked, above it the other.
void ExpectChange(uint32_t world, double bytes, const std::string& below,
                  const std::string& above) {
  EXPECT_EQ(Picked(world, static_cast<uint64_t>(bytes * 0.99)), below) << world;
  EXPECT_EQ(Picked(world, static_cast<uint64_t>(bytes * 1.01)), above) << world;
}

// The sizes of docs/collectives.md, where two formulas are equal.
TEST(PickAllReduce, ChangesWhereTheFormulasMeet) {
  const LinkCost& g = kGigabit;
  const double ring = 2 * g.beta + g.gamma;
  const double of_2 = g.alpha / (g.gamma / 2);
  EXPECT_NEAR(of_2, 400e3, 500);
  ExpectChange(2, of_2, "recursive_doubling", "ring");
  const double of_8 = 3 * g.alpha / (3 * (g.beta + g.gamma) - 7.0 / 8 * ring);
  EXPECT_NEAR(of_8, 14e3, 500);
  ExpectChange(8, of_8, "recursive_doubling", "halving_doubling");
  const double of_6 = 2 * g.alpha / (4 * g.beta + 3 * g.gamma - 5.0 / 6 * ring);
  EXPECT_NEAR(of_6, 5.2e3, 50);
  ExpectChange(6, of_6, "recursive_doubling", "torus_2d");
  const double of_7 = 8 * g.alpha / (4 * g.beta + 3 * g.gamma - 6.0 / 7 * ring);
  EXPECT_NEAR(of_7, 21e3, 500);
  ExpectChange(7, of_7, "recursive_doubling", "ring");
  const double of_11 = 3 * g.alpha / (5 * g.beta + 4 * g.gamma - 15.0 / 8 * ring);
  EXPECT_NEAR(of_11, 14e3, 500);
  ExpectChange(11, of_11, "recursive_doubling", "halving_doubling");
  const double then = 2 * (11 - 2 - 3) * g.alpha / (ring * (7.0 / 8 + 1.0 / 11));
  EXPECT_NEAR(then, 38e3, 500);
  ExpectChange(11, then, "halving_doubling", "ring");
}

TEST(PickAllReduce, TakesTheFirstOfThoseThatCostTheSame) {
  EXPECT_EQ(PickAllReduce({}, 8, 1 << 20, {}).algorithm, &AllReduceAlgorithms()[0]);
}

// Algorithms picked from one byte to 1 GiB in steps of 1%, in order, without repeats.
std::vector<std::string> Regimes(const LinkCost& link, uint32_t world) {
  std::vector<std::string> regimes;
  for (double bytes = 1; bytes <= 1 << 30; bytes = std::ceil(bytes * 1.01)) {
    const std::string name =
        PickAllReduce(link, world, static_cast<uint64_t>(bytes), {}).algorithm->name;
    if (regimes.empty() || regimes.back() != name) regimes.push_back(name);
  }
  return regimes;
}

// Tori of 4, 8, 9 and 27 ranks cost as much as other algorithms, up to rounding.
TEST(PickAllReduce, ChangesAFewTimesAndNeverBackAsBuffersGrow) {
  for (const LinkCost& link :
       {kGigabit, LinkCost{5e-6, 0.2e-9, 0.25e-9}, LinkCost{1e-6, 1e-9, 0}}) {
    for (uint32_t world = 2; world <= 33; ++world) {
      const std::vector<std::string> regimes = Regimes(link, world);
      EXPECT_LE(regimes.size(), 3u) << world;
      EXPECT_EQ(std::set<std::string>(regimes.begin(), regimes.end()).size(), regimes.size())
          << "comes back to one, with " << world << " ranks";
      for (const std::string& name : regimes) {
        EXPECT_TRUE(name != "torus_3d" || MostCubic(world).z_size > 1) << world;
        EXPECT_TRUE(name != "torus_2d" || MostSquare(world).rows > 1) << world;
      }
    }
  }
}

TEST(AllReduceAlgorithmsDeathTest, CostsOfSeveralRanksAHostNeedThatOfLinksWithin) {
  EXPECT_DEATH(Seconds("hierarchical", kGigabit, 4, 1024, {.ranks_per_host = 2}), "within_host");
}

// The worlds of docs/collectives.md.
TEST(PickAllReduce, TakesHalvingDoublingBetweenWhereItHasFarFewerRoundsThanTheGrid) {
  std::set<uint32_t> between;
  for (uint32_t world = 2; world <= 33; ++world) {
    const std::vector<std::string> regimes = Regimes(kGigabit, world);
    EXPECT_EQ(regimes[0], "recursive_doubling") << world;
    if (regimes.size() == 3 && regimes[1] == "halving_doubling") between.insert(world);
  }
  EXPECT_EQ(between,
            (std::set<uint32_t>{11, 13, 14, 17, 19, 21, 22, 23, 25, 26, 28, 29, 30, 31, 33}));
}

TEST(WithBestParts, MakesPartsNoSmallerThanWhatTravelsAlone) {
  const AllReduceAlgorithm& tree = *FindAllReduce("binary_tree");
  const LinkCost link = {.alpha = 50e-6, .beta = 170e-9};
  constexpr uint64_t kBytes = 64 << 10;
  EXPECT_GT(WithBestParts(tree, link, 4, kBytes, {}).parts, 8u);
  const AllReduceSettings best =
      WithBestParts(tree, link, 4, kBytes, {.min_part_bytes = (8 << 10) + 1});
  EXPECT_EQ(best.parts, 4u);
  EXPECT_EQ(WithBestParts(tree, link, 4, 4096, {.min_part_bytes = (8 << 10) + 1}).parts, 1u);
}

}  // namespace
}  // namespace tug
