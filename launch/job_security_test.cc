// SPDX-License-Identifier: Apache-2.0
#include "launch/job_security.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {
using ::testing::HasSubstr;

TEST(WrittenMode, IsWhatTheUserSaysLast) {
  EXPECT_EQ(WrittenMode("name: \"a\"", "a", {}).value(), SecurityConfig::MODE_DEFAULT);
  EXPECT_EQ(WrittenMode("security { mode: NONE }", "a", {}).value(), SecurityConfig::NONE);
  EXPECT_EQ(WrittenMode("security { mode: NONE }", "a", {"security.mode=CURVE"}).value(),
            SecurityConfig::CURVE);
  EXPECT_FALSE(WrittenMode("securty {}", "a", {}).ok());
}

TEST(Settle, LeavesALocalJobWithoutKeys) {
  JobSecurity security;
  ASSERT_TRUE(Settle(security, /*exposed=*/false).ok());
  EXPECT_EQ(security.mode, SecurityConfig::NONE);
  EXPECT_TRUE(security.keys.none());
  EXPECT_FALSE(security.keys_made);
}

TEST(Settle, MakesATokenForAJobThatOthersCanReach) {
  JobSecurity security;
  ASSERT_TRUE(Settle(security, /*exposed=*/true).ok());
  EXPECT_EQ(security.mode, SecurityConfig::TOKEN);
  EXPECT_EQ(security.keys.mode, SecurityConfig::TOKEN);
  EXPECT_TRUE(security.keys_made);
  EXPECT_EQ(ModeOverride(security), "security.mode=TOKEN");
}

TEST(Settle, MakesWhatTheWrittenModeNeeds) {
  JobSecurity security{.mode = SecurityConfig::CURVE, .keys = {}};
  ASSERT_TRUE(Settle(security, /*exposed=*/false).ok());
  EXPECT_EQ(security.keys.mode, SecurityConfig::CURVE);
  EXPECT_TRUE(security.keys_made);
}

TEST(Settle, TakesTheUsersKeysAndTheirMode) {
  const JobKeys keys = MakeJobKeys(SecurityConfig::CURVE).value();
  JobSecurity security{.mode = SecurityConfig::MODE_DEFAULT, .keys = keys};
  ASSERT_TRUE(Settle(security, /*exposed=*/true).ok());
  EXPECT_EQ(security.mode, SecurityConfig::CURVE);
  EXPECT_EQ(security.keys, keys);
  EXPECT_FALSE(security.keys_made);
}

TEST(Settle, RefusesKeysOfAnotherModeThanIsWritten) {
  const JobKeys keys = MakeJobKeys(SecurityConfig::TOKEN).value();
  for (const SecurityConfig::Mode mode : {SecurityConfig::NONE, SecurityConfig::CURVE}) {
    JobSecurity security{.mode = mode, .keys = keys};
    EXPECT_THAT(std::string(Settle(security, /*exposed=*/false).message()),
                HasSubstr("security.mode"));
  }
}

}  // namespace
}  // namespace tug
