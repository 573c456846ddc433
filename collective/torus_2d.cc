#include "collective/torus_2d.h"

#include "collective/grid.h"
#include "collective/ring_phases.h"

namespace tug {

Schedule Torus2dAllReduce(uint32_t rank, uint32_t world) {
  const auto [rows, columns] = MostSquare(world);
  const uint32_t row = rank / columns, column = rank % columns;
  const Ring in_row{
      .first = row * columns, .count = columns, .position = column, .block_parts = rows};
  const Ring in_column{.first = column,
                       .stride = columns,
                       .count = rows,
                       .position = row,
                       .first_part = column * rows};
  Schedule schedule{.parts = world};
  AppendRingReduceScatter(in_row, schedule.steps);
  AppendRingReduceScatter(in_column, schedule.steps);
  AppendRingAllGather(in_column, schedule.steps);
  AppendRingAllGather(in_row, schedule.steps);
  return schedule;
}

double Torus2dAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  const auto [rows, columns] = MostSquare(world);
  const double all = static_cast<double>(bytes);
  return RingPhasesSeconds(link, columns, all / columns) +
         RingPhasesSeconds(link, rows, all / world);
}

}  // namespace tug
