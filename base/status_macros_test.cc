// SPDX-License-Identifier: Apache-2.0
#include "base/status_macros.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

absl::StatusOr<std::unique_ptr<int>> Make(int value) {
  if (value < 0) {
    return absl::OutOfRangeError("negative");
  }
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Sum(int a, int b) {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> left, Make(a));
  std::unique_ptr<int> right;
  ASSIGN_OR_RETURN(right, Make(b));
  return *left + *right;
}

absl::Status SumIsEven(int a, int b, bool* reached_end) {
  RETURN_IF_ERROR(Make(a).status());
  ASSIGN_OR_RETURN(const int sum, Sum(a, b));
  *reached_end = true;
  return sum % 2 == 0 ? absl::OkStatus() : absl::FailedPreconditionError("odd");
}

TEST(StatusMacros, AssignsAndContinuesOnSuccess) {
  bool reached_end = false;
  EXPECT_TRUE(SumIsEven(1, 3, &reached_end).ok());
  EXPECT_TRUE(reached_end);
}

TEST(StatusMacros, ReturnsTheErrorOfTheExpression) {
  bool reached_end = false;
  EXPECT_EQ(SumIsEven(-1, 3, &reached_end), absl::OutOfRangeError("negative"));
  EXPECT_EQ(SumIsEven(1, -3, &reached_end), absl::OutOfRangeError("negative"));
  EXPECT_FALSE(reached_end);
}

}  // namespace
}  // namespace tug
