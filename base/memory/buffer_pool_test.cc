// SPDX-License-Identifier: Apache-2.0
#include "base/memory/buffer_pool.h"

#include <gtest/gtest.h>

#include <utility>

namespace tug {
namespace {

TEST(BufferPool, KeepsNoMoreSpareThanItsLimitLeaves) {
  BufferPool pool(1000);
  AlignedBuffer a = pool.Take(400);
  AlignedBuffer b = pool.Take(400);
  AlignedBuffer c = pool.Take(400);
  EXPECT_EQ(pool.used_bytes(), 1200u);  // the limit bounds spare buffers only
  pool.Give(std::move(a));
  EXPECT_EQ(pool.total_bytes(), 800u);
  pool.Give(std::move(b));
  EXPECT_EQ(pool.total_bytes(), 800u);
  pool.Hold(500);
  EXPECT_EQ(pool.total_bytes(), 900u);
  pool.Release(500);
  pool.Give(std::move(c));
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_EQ(pool.total_bytes(), 400u);
}

}  // namespace
}  // namespace tug
