// SPDX-License-Identifier: Apache-2.0
#include "proto/process_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tug {
namespace {

using testing::Eq;
using testing::Optional;

TEST(ProcessName, IsReadBack) {
  EXPECT_EQ(ProcessName(kWorkerRole, 0), "worker-0");
  EXPECT_THAT(ProcessIndexOf(kWorkerRole, "worker-0"), Optional(0));
  EXPECT_THAT(ProcessIndexOf(kServerRole, ProcessName(kServerRole, 17)), Optional(17));
}

TEST(ProcessName, RefusesOtherTexts) {
  for (const char* text : {"", "worker", "worker-", "worker-x", "worker-01", "worker--1",
                           "worker- 1", "server-1", "worker-4096", "worker-99999999999"}) {
    EXPECT_THAT(ProcessIndexOf(kWorkerRole, text), Eq(std::nullopt)) << text;
  }
}

TEST(LifeText, CountsTheProcessesOfAName) {
  EXPECT_EQ(LifeText(1), "first life");
  EXPECT_EQ(LifeText(2), "second life");
  EXPECT_EQ(LifeText(5), "fifth life");
  EXPECT_EQ(LifeText(6), "life 6");
}

}  // namespace
}  // namespace tug
