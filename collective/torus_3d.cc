#include "collective/torus_3d.h"

#include "collective/grid.h"
#include "collective/ring_phases.h"

namespace tug {

Schedule Torus3dAllReduce(uint32_t rank, uint32_t world) {
  const auto [x_size, y_size, z_size] = MostCubic(world);
  const uint32_t layer = x_size * y_size;
  const uint32_t x = rank % x_size, y = rank / x_size % y_size, z = rank / layer;
  const Ring along_x{
      .first = rank - x, .count = x_size, .position = x, .block_parts = y_size * z_size};
  const Ring along_y{.first = rank - y * x_size,
                     .stride = x_size,
                     .count = y_size,
                     .position = y,
                     .first_part = x * y_size * z_size,
                     .block_parts = z_size};
  const Ring along_z{.first = rank - z * layer,
                     .stride = layer,
                     .count = z_size,
                     .position = z,
                     .first_part = (x * y_size + y) * z_size};
  Schedule schedule{.parts = world};
  for (const Ring& ring : {along_x, along_y, along_z}) {
    AppendRingReduceScatter(ring, schedule.steps);
  }
  for (const Ring& ring : {along_z, along_y, along_x}) AppendRingAllGather(ring, schedule.steps);
  return schedule;
}

double Torus3dAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  const auto [x_size, y_size, z_size] = MostCubic(world);
  const double all = static_cast<double>(bytes);
  return RingPhasesSeconds(link, x_size, all / x_size) +
         RingPhasesSeconds(link, y_size, all / x_size / y_size) +
         RingPhasesSeconds(link, z_size, all / world);
}

}  // namespace tug
