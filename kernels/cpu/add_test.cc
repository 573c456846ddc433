// SPDX-License-Identifier: Apache-2.0
#include "kernels/add.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/bf16_ref.h"
#include "kernels/reference/fp16_ref.h"

namespace tug::kernels {
namespace {

float Widen(float x) { return x; }
float Widen(Bf16 x) { return FloatFromBf16Ref(x); }
float Widen(Fp16 x) { return FloatFromFp16Ref(x); }
void Narrow(float x, float& to) { to = x; }
void Narrow(float x, Bf16& to) { to = Bf16FromFloatRef(x); }
void Narrow(float x, Fp16& to) { to = Fp16FromFloatRef(x); }

template <typename T>
class AddTest : public ::testing::Test {};
using Types = ::testing::Types<float, Bf16, Fp16>;
TYPED_TEST_SUITE(AddTest, Types);

TYPED_TEST(AddTest, AddsInFp32AndRoundsOnce) {
  for (const size_t n : {0, 1, 7, 31, 32, 33, 1023}) {
    std::vector<TypeParam> a(n + 1), b(n + 1), expected(n + 1);
    for (size_t i = 0; i < n + 1; ++i) {
      Narrow(std::sin(static_cast<float>(i)) * 10, a[i]);
      Narrow(std::cos(static_cast<float>(3 * i)) / 7, b[i]);
      Narrow(Widen(a[i]) + Widen(b[i]), expected[i]);
    }
    std::vector<TypeParam> sum(n + 1);
    sum[n] = expected[n] = a[n];
    Add(a.data(), b.data(), sum.data(), static_cast<int64_t>(n));
    EXPECT_EQ(std::memcmp(sum.data(), expected.data(), (n + 1) * sizeof(TypeParam)), 0) << n;
    Add(a.data(), b.data(), a.data(), static_cast<int64_t>(n));  // in place
    EXPECT_EQ(std::memcmp(a.data(), expected.data(), (n + 1) * sizeof(TypeParam)), 0) << n;
  }
}

}  // namespace
}  // namespace tug::kernels
