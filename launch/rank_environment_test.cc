// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_environment.h"

#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RankEnvironment, IsNotThereWhereNobodySetsIt) {
  EXPECT_EQ(CoordinatorAddressOf({}).value(), "");
  const WorkerRank worker = WorkerRankOf({}).value();
  EXPECT_FALSE(worker.in_job.has_value());
  EXPECT_FALSE(worker.on_host.has_value());
}

TEST(RankEnvironment, TellsTheCoordinatorsAddress) {
  EXPECT_EQ(CoordinatorAddressOf({{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "7070"}}).value(),
            "10.0.0.1:7070");
  EXPECT_EQ(CoordinatorAddressOf({{"MASTER_ADDR", "node-1.a_b"}, {"MASTER_PORT", "1"}}).value(),
            "node-1.a_b:1");
}

TEST(RankEnvironment, TellsWhichWorkerItIs) {
  const WorkerRank worker =
      WorkerRankOf(
          {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}})
          .value();
  EXPECT_EQ(worker.in_job->rank, 5u);
  EXPECT_EQ(worker.in_job->of, 8u);
  EXPECT_EQ(worker.on_host->rank, 1u);
  EXPECT_EQ(worker.on_host->of, 4u);
}

TEST(RankEnvironment, IgnoresHostRankVariablesIfAFlagGivesTheRank) {
  const auto worker =
      WorkerRankOf({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "x"}}, RanksRead::kInJob);
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->in_job->of, 8u);
  EXPECT_FALSE(worker->on_host.has_value());
  EXPECT_THAT(
      std::string(WorkerRankOf({{"WORLD_SIZE", "8"}}, RanksRead::kInJob).status().message()),
      HasSubstr("WORLD_SIZE is set but RANK is not"));
}

TEST(RankEnvironment, SaysInOneLineWhatContradicts) {
  struct {
    Environment environment;
    std::vector<std::string> parts;
  } const cases[] = {
      {{{"MASTER_ADDR", "a"}}, {"MASTER_ADDR is set but MASTER_PORT is not", "set both"}},
      {{{"MASTER_PORT", "1"}}, {"MASTER_PORT is set but MASTER_ADDR is not"}},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}}, {"MASTER_PORT='x'", "from 1 to 65535"}},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "0"}}, {"MASTER_PORT='0'"}},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "65536"}}, {"MASTER_PORT='65536'"}},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", " 7"}}, {"MASTER_PORT=' 7'"}},
      {{{"MASTER_ADDR", "fe80::1"}, {"MASTER_PORT", "7"}}, {"MASTER_ADDR='fe80::1'", "IPv4"}},
      {{{"MASTER_ADDR", "a\nb"}, {"MASTER_PORT", "7"}}, {"MASTER_ADDR='a?b'"}},
      {{{"RANK", "1"}}, {"RANK is set but WORLD_SIZE is not"}},
      {{{"WORLD_SIZE", "1"}}, {"WORLD_SIZE is set but RANK is not"}},
      {{{"LOCAL_RANK", "0"}}, {"LOCAL_RANK is set but LOCAL_WORLD_SIZE is not"}},
      {{{"RANK", "4"}, {"WORLD_SIZE", "4"}}, {"RANK=4", "WORLD_SIZE=4", "out of range"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, {"RANK=0", "WORLD_SIZE=0"}},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "4"}}, {"RANK='-1'"}},
      {{{"RANK", "1e0"}, {"WORLD_SIZE", "4"}}, {"RANK='1e0'"}},
      {{{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}, {"LOCAL_RANK=2"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}},
       {"LOCAL_WORLD_SIZE=4", "WORLD_SIZE=2"}},
  };
  for (const auto& [environment, parts] : cases) {
    absl::Status status = CoordinatorAddressOf(environment).status();
    if (status.ok()) status = WorkerRankOf(environment).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << parts[0];
    for (const std::string& part : parts)
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  }
}

// For any values: accepted ranks are those that were set and are consistent; all others are
// refused.
TEST(RankEnvironment, TakesNothingButWhatHoldsTogether) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const auto below = [&](uint32_t end) { return random() % end; };
  const auto value = [&]() -> std::string {
    switch (below(8)) {
      case 0:
        return "";
      case 1:
        return absl::StrCat(random());
      case 2: {
        std::string bytes(below(8), '\0');
        for (char& c : bytes) c = static_cast<char>(1 + below(255));
        return bytes;
      }
      case 3:
        return absl::StrCat(below(2) == 0 ? "-" : "+", below(9));
      default:  // half of the cases
        return absl::StrCat(below(4));
    }
  };
  const char* const names[] = {"RANK",        "WORLD_SIZE",  "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                               "MASTER_ADDR", "MASTER_PORT", "OTHER"};
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    Environment environment;
    for (const char* name : names) {
      const std::string text = value();
      if (!text.empty()) environment[name] = text;
    }
    const auto worker = WorkerRankOf(environment);
    const auto check = [&](const std::optional<RankOf>& rank, const char* own, const char* size) {
      EXPECT_EQ(rank.has_value(), environment.count(own) == 1);
      EXPECT_EQ(rank.has_value(), environment.count(size) == 1);
      if (!rank.has_value()) return;
      ++taken;
      uint32_t said = 0;
      EXPECT_TRUE(absl::SimpleAtoi(environment[own], &said));
      EXPECT_EQ(rank->rank, said);
      EXPECT_TRUE(absl::SimpleAtoi(environment[size], &said));
      EXPECT_EQ(rank->of, said);
      EXPECT_LT(rank->rank, rank->of);
    };
    if (worker.ok()) {
      check(worker->in_job, "RANK", "WORLD_SIZE");
      check(worker->on_host, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
    }
    const auto address = CoordinatorAddressOf(environment);
    if (address.ok() && !address->empty()) {
      EXPECT_EQ(*address, absl::StrCat(environment["MASTER_ADDR"], ":",
                                       std::stoi(environment["MASTER_PORT"])));
    }
  }
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace tug
