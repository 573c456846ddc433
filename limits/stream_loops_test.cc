// SPDX-License-Identifier: Apache-2.0
#include "limits/stream_loops.h"

#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(StreamLoops, ComputeWhatTheyAreNamedFor) {
  for (const int64_t n : {0, 1, 31, 1023}) {
    std::vector<float> a(n, 1.0f), b(n), triad(n);
    std::vector<uint32_t> x(n);
    for (int64_t i = 0; i < n; ++i) b[i] = static_cast<float>(i);
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<uint32_t>(i);
    StreamAdd(a.data(), b.data(), n);
    StreamTriad(triad.data(), a.data(), b.data(), 2.0f, n);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(a[i], 1.0f + b[i]);
      EXPECT_EQ(triad[i], 1.0f + 3.0f * b[i]);
    }
    EXPECT_EQ(StreamRead(x.data(), n), static_cast<uint32_t>(n * (n - 1) / 2));
  }
}

TEST(StreamLoops, NameTheInstructionSet) { EXPECT_FALSE(InstructionSet().empty()); }

}  // namespace
}  // namespace tug
