// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_table.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

BenchWindow Window(uint64_t there, uint64_t back, std::vector<double> latencies = {}) {
  BenchWindow window;
  window.seconds = 2;
  window.there_bytes = there;
  window.back_bytes = back;
  window.operations = 10;
  window.cpu_seconds = 3;
  window.latencies_us[0] = std::move(latencies);
  return window;
}

TEST(Quantile, IsTheNearestRank) {
  EXPECT_TRUE(std::isnan(Quantile({}, 0.5)));
  EXPECT_EQ(Quantile({7}, 0.99), 7);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 0.0), 1);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 0.99), 4);
}

TEST(FiguresOf, AddsBothDirections) {
  const BenchFigures figures = FiguresOf(Window(1'000'000'000, 3'000'000'000, {5, 6, 7}));
  EXPECT_DOUBLE_EQ(figures.gigabytes_per_second, 2);
  EXPECT_DOUBLE_EQ(figures.operations_per_second, 5);
  EXPECT_DOUBLE_EQ(figures.cpu_seconds_per_gigabyte, 0.75);
  EXPECT_DOUBLE_EQ(figures.p50_us[0], 6);
  EXPECT_TRUE(std::isnan(figures.p50_us[1])) << "a series without latencies";
}

TEST(MeasureRows, TakesTurnsAndRatiosWithinARun) {
  std::string order;
  uint64_t bytes = 1000;
  std::vector<BenchRow> rows(2);
  rows[0] = {.name = "ours",
             .measure = [&]() -> absl::StatusOr<BenchWindow> {
               order += 'o';
               return Window(bytes, 0);
             },
             .limits = {1}};
  rows[1] = {.name = "limit", .measure = [&]() -> absl::StatusOr<BenchWindow> {
               order += 'l';
               return Window(2000, std::exchange(bytes, bytes + 500));
             }};
  ASSERT_TRUE(MeasureRows(rows, 2).ok());
  EXPECT_EQ(order, "olol");
  EXPECT_THAT(RatiosOf(rows, 0),
              ElementsAre(ElementsAre(DoubleEq(1000.0 / 3000), DoubleEq(1500.0 / 3500))));
  EXPECT_THAT(RatiosOf(rows, 1), ElementsAre());
  EXPECT_EQ(RowsAsJson(rows)[0]["ratio_to"]["limit"].size(), 2u);
}

TEST(MeasureRows, NamesTheRowThatFails) {
  std::vector<BenchRow> rows(1);
  rows[0].name = "ours";
  rows[0].measure = []() -> absl::StatusOr<BenchWindow> { return absl::AbortedError("no luck"); };
  EXPECT_EQ(MeasureRows(rows, 1).message(), "ours: no luck");
}

}  // namespace
}  // namespace tug
