// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/mesh_2d.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "collective/schedules/grid.h"

namespace tug {
namespace {

// A line of ranks first, first + stride, ..., as one of them sees it.
struct Line {
  uint32_t first;
  uint32_t stride;
  uint32_t count;
  uint32_t position;
};

// All-reduce along a line. Position x sends part i to x - 1 in step count - 1 - x + i, and to x + 1
// in step count - 1 + x + i.
void AppendLine(const Line& line, uint32_t parts, std::vector<Step>& steps) {
  if (line.count == 1) return;
  const size_t start = steps.size();
  steps.resize(start + 2 * line.count - 3 + parts);
  const uint32_t last = line.count - 1, x = line.position;
  const uint32_t rank = line.first + x * line.stride;
  for (uint32_t part = 0; part < parts; ++part) {
    const auto at = [&](uint32_t first) -> Step& { return steps[start + first + part]; };
    if (x < last) {
      const uint32_t next = rank + line.stride;
      at(last - (x + 1)).receives.push_back({next, part, part + 1, true});
      at(last + x).sends.push_back({next, part, part + 1});
    }
    if (x > 0) {
      const uint32_t previous = rank - line.stride;
      at(last - x).sends.push_back({previous, part, part + 1});
      at(last + x - 1).receives.push_back({previous, part, part + 1});
    }
  }
}

double FirstPartSeconds(const LinkCost& link, const Grid2d& grid, double part) {
  return (grid.columns - 1 + grid.rows - 1) * (ReduceSeconds(link, part) + SendSeconds(link, part));
}

// Time the busiest rank of a line needs to receive one part.
double BusiestSeconds(const LinkCost& link, uint32_t count, double part) {
  if (count == 1) return 0;
  return ReduceSeconds(link, part) + (count > 2 ? SendSeconds(link, part) : 0);
}

}  // namespace

CollectiveSchedule Mesh2dAllReduce(uint32_t rank, uint32_t world, uint32_t parts) {
  TUG_CHECK(rank < world);
  TUG_CHECK(parts >= 1);
  const auto [rows, columns] = MostSquare(world);
  const uint32_t row = rank / columns, column = rank % columns;
  CollectiveSchedule schedule{.parts = parts};
  AppendLine({row * columns, 1, columns, column}, parts, schedule.steps);
  AppendLine({column, columns, rows, row}, parts, schedule.steps);
  return schedule;
}

double Mesh2dAllReduceSeconds(const LinkCost& link, uint32_t world, uint32_t parts,
                              uint64_t bytes) {
  TUG_CHECK(world > 0);
  const Grid2d grid = MostSquare(world);
  const double part = static_cast<double>(bytes) / parts;
  const double busiest =
      BusiestSeconds(link, grid.columns, part) + BusiestSeconds(link, grid.rows, part);
  return FirstPartSeconds(link, grid, part) + (parts - 1) * busiest;
}

double Mesh2dAllReduceSecondsOnMesh(const LinkCost& link, uint32_t world, uint32_t parts,
                                    uint64_t bytes) {
  TUG_CHECK(world > 0);
  if (world == 1) return 0;
  const Grid2d grid = MostSquare(world);
  const double part = static_cast<double>(bytes) / parts;
  return FirstPartSeconds(link, grid, part) + (parts - 1) * ReduceSeconds(link, part);
}

}  // namespace tug
