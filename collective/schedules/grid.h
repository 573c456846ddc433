// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_GRID_H_
#define TUG_COLLECTIVE_SCHEDULES_GRID_H_

#include <array>
#include <cstdint>

namespace tug {

// Layout of a world in rows: rank = row * columns + column. `sides`, here and below: first the side
// along which ranks are consecutive (torus.h).
struct Grid2d {
  uint32_t rows = 1;
  uint32_t columns = 1;
  std::array<uint32_t, 2> sides() const { return {columns, rows}; }
  friend bool operator==(const Grid2d&, const Grid2d&) = default;
};
// Layout in layers of rows: rank = (z * y_size + y) * x_size + x.
struct Grid3d {
  uint32_t x_size = 1;
  uint32_t y_size = 1;
  uint32_t z_size = 1;
  std::array<uint32_t, 3> sides() const { return {x_size, y_size, z_size}; }
  friend bool operator==(const Grid3d&, const Grid3d&) = default;
};

// The most square grid, rows <= columns; for a prime number, one row.
Grid2d MostSquare(uint32_t world);
// The grid with the smallest x + y + z, z <= y <= x; for a prime number, one row; for a product of
// two primes, one layer.
Grid3d MostCubic(uint32_t world);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_GRID_H_
