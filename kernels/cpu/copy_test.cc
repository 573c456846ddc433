// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace tug::kernels {
namespace {

void ExpectCopiesEveryElementAndNoOther(void (*copy)(const float*, float*, int64_t)) {
  constexpr int64_t kLong = 64 << 10;
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{31}, int64_t{32}, int64_t{33},
                          int64_t{1023}, kLong - 1, kLong, kLong + 1, kLong + 77}) {
    for (const int64_t offset : {0, 1, 3, 16}) {
      std::vector<float> src(static_cast<size_t>(n) + 32);
      for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i);
      std::vector<float> dst(src.size() + 32, -1.0f);
      copy(src.data() + 5, dst.data() + offset, n);
      const auto first = dst.begin() + offset;
      EXPECT_TRUE(std::equal(first, first + n, src.begin() + 5)) << n << " at " << offset;
      EXPECT_TRUE(std::all_of(dst.begin(), first, [](float x) { return x == -1.0f; }));
      EXPECT_TRUE(std::all_of(first + n, dst.end(), [](float x) { return x == -1.0f; }));
    }
  }
}

TEST(CopyForLater, CopiesEveryElementAndNoOther) {
  ExpectCopiesEveryElementAndNoOther(CopyForLater);
}

TEST(CopyForAnotherCore, CopiesEveryElementAndNoOther) {
  ExpectCopiesEveryElementAndNoOther(CopyForAnotherCore);
}

}  // namespace
}  // namespace tug::kernels
