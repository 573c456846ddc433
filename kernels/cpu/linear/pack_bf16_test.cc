// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear/pack_bf16.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/memory/lease.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {
namespace {

// Runs on every instruction set that this machine supports.
class PackBf16 : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { Take(GetParam()); }
  void TearDown() override { Take(0); }

  static void Take(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  template <typename T>
  static void ExpectPacked(Transpose tb, int64_t k, int64_t n) {
    SCOPED_TRACE(testing::Message() << "transpose " << static_cast<bool>(tb) << " k " << k << " n "
                                    << n << " size " << sizeof(T));
    const auto values = RandomFloats(k * n, 1);
    const auto b = As<T>(values);
    const auto rounded = As<Bf16>(values);
    AlignedBuffer packed(PackedBytes(k, n));
    auto* const at = reinterpret_cast<Bf16*>(packed.data());
    for (int64_t part = 0; part < PackParts(tb, k, n); ++part) {
      PackPart(part, tb, k, n, b.data(), at);
    }
    const int64_t rows = (k + 31) / 32 * 32, columns = (n + 63) / 64 * 64;
    ASSERT_EQ(packed.size_bytes(), static_cast<size_t>(rows * columns) * sizeof(Bf16));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const Bf16 expected = i >= k || j >= n        ? Bf16{}
                              : tb == Transpose::kYes ? rounded[j * k + i]
                                                      : rounded[i * n + j];
        ASSERT_EQ(at[j / 64 * rows * 64 + i / 2 * 128 + j % 64 * 2 + i % 2], expected)
            << "row " << i << " column " << j;
      }
    }
  }
};

TEST_P(PackBf16, PutsEveryElementInItsPlaceAndZerosAround) {
  for (const Transpose tb : {Transpose::kNo, Transpose::kYes}) {
    for (const int64_t size : kTestSizes) {
      for (const int64_t other : {0, 1, 31, 33, 64, 80, 130}) {
        ExpectPacked<float>(tb, size, other);
        ExpectPacked<float>(tb, other, size);
        ExpectPacked<Bf16>(tb, size, other);
        ExpectPacked<Bf16>(tb, other, size);
      }
    }
    ExpectPacked<Bf16>(tb, 300, 1000);  // several parts
    ExpectPacked<float>(tb, 1000, 300);
  }
}

TEST_P(PackBf16, ZeroPaddingMakesMemoryOfSomethingElseFit) {
  for (const int64_t size : kTestSizes) {
    for (const int64_t other : {1, 32, 33, 64, 130}) {
      for (const auto& [k, n] : {std::pair(size, other), std::pair(other, size)}) {
        SCOPED_TRACE(testing::Message() << "k " << k << " n " << n);
        const auto b = As<Bf16>(RandomFloats(k * n, 1));
        AlignedBuffer fresh(PackedBytes(k, n)), used(PackedBytes(k, n));
        std::fill_n(used.data(), used.size_bytes(), std::byte{0xFF});
        ZeroPadding(k, n, reinterpret_cast<Bf16*>(used.data()));
        for (AlignedBuffer* const packed : {&fresh, &used}) {
          for (int64_t part = 0; part < PackParts(Transpose::kNo, k, n); ++part) {
            PackPart(part, Transpose::kNo, k, n, b.data(), reinterpret_cast<Bf16*>(packed->data()));
          }
        }
        ASSERT_TRUE(std::equal(fresh.data(), fresh.data() + fresh.size_bytes(), used.data()));
      }
    }
  }
}

TEST_P(PackBf16, TransposesAndAddsAZeroToAnOddNumberOfRows) {
  for (const int64_t size : kTestSizes) {
    for (const int64_t other : {0, 1, 31, 32, 33, 80, 1023}) {
      for (const auto& [k, m] : {std::pair(size, other), std::pair(other, size)}) {
        SCOPED_TRACE(testing::Message() << "k " << k << " m " << m);
        const int64_t stride = m + 3, to_stride = TransposedStride(k);
        const auto a = As<Bf16>(RandomFloats(k * stride, 1));
        // One extra element, which must remain unchanged.
        const Bf16 untouched = As<Bf16>({7.0f})[0];
        std::vector<Bf16> transposed(m * to_stride + 1, untouched);
        TransposeBf16(k, m, stride, a.data(), transposed.data());
        EXPECT_EQ(to_stride, (k + 1) / 2 * 2);
        for (int64_t j = 0; j < m; ++j) {
          for (int64_t i = 0; i < to_stride; ++i) {
            ASSERT_EQ(transposed[j * to_stride + i], i < k ? a[i * stride + j] : Bf16{})
                << "row " << i << " column " << j;
          }
        }
        ASSERT_EQ(transposed.back(), untouched);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackBf16, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<int64_t>& info) {
                           return hwy::TargetName(info.param);
                         });

}  // namespace
}  // namespace tug::kernels
