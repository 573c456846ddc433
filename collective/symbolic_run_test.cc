#include "collective/symbolic_run.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collective/recursive_doubling.h"
#include "collective/ring.h"

namespace tug {
namespace {

bool Everything(uint32_t, uint32_t) { return true; }

std::vector<Schedule> Rings(uint32_t world) {
  std::vector<Schedule> family;
  for (uint32_t rank = 0; rank < world; ++rank) family.push_back(RingAllReduce(rank, world));
  return family;
}

// Heeds no hazards: WriteHazards is not for families that break the contract.
std::string ErrorOf(const std::vector<Schedule>& family) {
  SumTerms terms;
  const std::vector<std::vector<WriteHazard>> none(family.size());
  return RunSymbolically(family, none, Everything, 1, terms).error;
}

TEST(SymbolicRun, FindsNothingWrongWithARing) { EXPECT_EQ(ErrorOf(Rings(5)), ""); }

TEST(SymbolicRun, FindsATransferThatNobodyExpects) {
  std::vector<Schedule> family = Rings(4);
  family[2].steps[1].receives.clear();
  EXPECT_NE(ErrorOf(family).find("rank 1 sends is not what rank 2 receives"), std::string::npos);
}

TEST(SymbolicRun, FindsATransferOfOtherParts) {
  std::vector<Schedule> family = Rings(4);
  family[2].steps[1].receives[0].begin -= 1;
  EXPECT_NE(ErrorOf(family).find("is not what"), std::string::npos);
}

TEST(SymbolicRun, FindsReceivesOfAStepThatOverlap) {
  const std::vector<Schedule> family = {
      {1, {{{}, {{1, 0, 1, true}, {2, 0, 1, true}}}}},
      {1, {{{{0, 0, 1}}, {}}}},
      {1, {{{{0, 0, 1}}, {}}}},
  };
  EXPECT_NE(ErrorOf(family).find("overlap"), std::string::npos);
}

TEST(SymbolicRun, FindsAContributionSummedTwice) {
  std::vector<Schedule> family = Rings(3);
  for (Schedule& schedule : family) schedule.steps[2].receives[0].reduces = true;
  EXPECT_NE(ErrorOf(family).find("sums a contribution twice"), std::string::npos);
}

TEST(SymbolicRun, FindsAContributionLost) {
  std::vector<Schedule> family = Rings(3);
  family[1].steps[1].receives[0].reduces = false;
  EXPECT_NE(ErrorOf(family).find("loses a contribution"), std::string::npos);
}

TEST(SymbolicRun, FindsAPartSentWithNothingInIt) {
  SumTerms terms;
  const auto own = [](uint32_t rank, uint32_t part) { return rank == part; };
  const std::vector<Schedule> family = Rings(3);
  EXPECT_NE(
      RunSymbolically(family, AllWriteHazards(family), own, 1, terms).error.find("nothing in"),
      std::string::npos);
}

TEST(SymbolicRun, FindsAWriteThatAPeerHasYetToReadUnlessHazardsAreHeeded) {
  std::vector<Schedule> family;
  for (uint32_t rank = 0; rank < 4; ++rank) family.push_back(RecursiveDoublingAllReduce(rank, 4));
  SumTerms terms;
  EXPECT_EQ(RunSymbolically(family, AllWriteHazards(family), Everything, 1, terms).error, "");
  EXPECT_NE(ErrorOf(family).find("yet to read"), std::string::npos);
}

}  // namespace
}  // namespace tug
