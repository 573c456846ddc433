// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/grid.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tug {
namespace {

TEST(MostSquare, HasTheSidesThatAreClosest) {
  EXPECT_EQ(MostSquare(1), (Grid2d{1, 1}));
  EXPECT_EQ(MostSquare(12), (Grid2d{3, 4}));
  EXPECT_EQ(MostSquare(16), (Grid2d{4, 4}));
  EXPECT_EQ(MostSquare(30), (Grid2d{5, 6}));
}

TEST(MostSquare, PrimeNumberIsOneRow) {
  for (uint32_t prime : {2, 3, 5, 7, 31}) EXPECT_EQ(MostSquare(prime), (Grid2d{1, prime}));
}

TEST(MostCubic, HasTheSmallestSumOfSides) {
  EXPECT_EQ(MostCubic(1), (Grid3d{1, 1, 1}));
  EXPECT_EQ(MostCubic(7), (Grid3d{7, 1, 1}));
  EXPECT_EQ(MostCubic(6), (Grid3d{3, 2, 1}));
  EXPECT_EQ(MostCubic(27), (Grid3d{3, 3, 3}));
  EXPECT_EQ(MostCubic(32), (Grid3d{4, 4, 2}));
}

TEST(MostCubic, HoldsAllRanks) {
  for (uint32_t world = 1; world <= 200; ++world) {
    const Grid3d grid = MostCubic(world);
    EXPECT_EQ(grid.x_size * grid.y_size * grid.z_size, world);
    EXPECT_GE(grid.x_size, grid.y_size);
    EXPECT_GE(grid.y_size, grid.z_size);
  }
}

}  // namespace
}  // namespace tug
