#include "collective/algorithms.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "collective/ring.h"

namespace tug {
namespace {

constexpr LinkCost kGigabit{50e-6, 8e-9, 0.25e-9};
// One second a message; one a byte; one a byte that is summed.
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
  EXPECT_EQ(Seconds("torus_2d", kMessages, 7, 1), 12);  // the ring
  EXPECT_EQ(Seconds("torus_3d", kMessages, 27, 1), 12);
  EXPECT_EQ(Seconds("mesh_2d", kMessages, 16, 1), 12);
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
  EXPECT_DOUBLE_EQ(Seconds("hierarchical", kBytes, 16, 1600, {.ranks_per_host = 4}), 2400);
  EXPECT_DOUBLE_EQ(Seconds("ring", kSummed, 8, 800), 700);
  EXPECT_DOUBLE_EQ(Seconds("halving_doubling", kSummed, 8, 800), 700);
  EXPECT_DOUBLE_EQ(Seconds("recursive_doubling", kSummed, 8, 800), 2400);
  EXPECT_DOUBLE_EQ(Seconds("torus_2d", kSummed, 16, 1600), 1500);
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

TEST(PickAllReduce, TakesDoublingForSmallAndHalvingDoublingForLargeBuffersOfAPowerOfTwo) {
  EXPECT_EQ(Picked(8, 1024), "recursive_doubling");
  EXPECT_EQ(Picked(8, 1 << 20), "halving_doubling");
  EXPECT_EQ(Picked(8, 64 << 20), "halving_doubling");
}

TEST(PickAllReduce, TakesRingsForLargeBuffersOfOtherWorlds) {
  EXPECT_EQ(Picked(7, 64 << 20), "ring");
  EXPECT_EQ(Picked(6, 64 << 20), "torus_2d");  // the ring's bytes in fewer rounds
}

// The sizes of docs/collectives.md, from the formulas set equal.
TEST(PickAllReduce, ChangesWhereTheFormulasMeet) {
  const LinkCost& g = kGigabit;
  const double of_8 = 3 * g.alpha / (3 * (g.beta + g.gamma) - 7.0 / 8 * (2 * g.beta + g.gamma));
  EXPECT_NEAR(of_8, 14e3, 500);
  EXPECT_EQ(Picked(8, static_cast<uint64_t>(of_8 * 0.99)), "recursive_doubling");
  EXPECT_EQ(Picked(8, static_cast<uint64_t>(of_8 * 1.01)), "halving_doubling");
  const double of_6 = 2 * (6 - 2 - 2) * g.alpha / ((2 * g.beta + g.gamma) * (3.0 / 4 + 1.0 / 6));
  EXPECT_NEAR(of_6, 13e3, 500);
  EXPECT_NEAR(Seconds("ring", g, 6, static_cast<uint64_t>(of_6)),
              Seconds("halving_doubling", g, 6, static_cast<uint64_t>(of_6)), 1e-7);
}

TEST(PickAllReduce, TakesTheFirstOfThoseThatCostTheSame) {
  EXPECT_EQ(PickAllReduce({}, 8, 1 << 20, {}).algorithm, &AllReduceAlgorithms()[0]);
}

TEST(PickAllReduce, TakesTheHierarchyWhereLinksWithinAHostAreFaster) {
  const LinkCost within{1e-6, 0.1e-9, 0.05e-9};
  const AllReduceChoice choice =
      PickAllReduce(kGigabit, 28, 64 << 20, {.ranks_per_host = 4, .within_host = within});
  EXPECT_STREQ(choice.algorithm->name, "hierarchical");
  EXPECT_LT(choice.seconds, RingAllReduceSeconds(kGigabit, 28, 64 << 20));
}

}  // namespace
}  // namespace tug
