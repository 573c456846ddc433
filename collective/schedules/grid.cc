// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/grid.h"

#include "base/check.h"

namespace tug {

Grid2d MostSquare(uint32_t world) {
  TUG_CHECK(world > 0);
  Grid2d best{1, world};
  for (uint32_t rows = 2; rows * rows <= world; ++rows) {
    if (world % rows == 0) best = {rows, world / rows};
  }
  return best;
}

Grid3d MostCubic(uint32_t world) {
  TUG_CHECK(world > 0);
  Grid3d best{world, 1, 1};
  for (uint32_t z = 1; z * z * z <= world; ++z) {
    if (world % z != 0) continue;
    const Grid2d layer = MostSquare(world / z);
    if (layer.rows < z) continue;
    if (layer.columns + layer.rows + z < best.x_size + best.y_size + best.z_size) {
      best = {layer.columns, layer.rows, z};
    }
  }
  return best;
}

}  // namespace tug
