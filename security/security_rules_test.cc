// SPDX-License-Identifier: Apache-2.0
#include "security/security_rules.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(CheckMayListen, WithoutKeysOnLoopbackOnly) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "localhost", "lo", "[::1]", "::1"}) {
    EXPECT_TRUE(CheckMayListen(SecurityConfig::NONE, host).ok()) << host;
  }
  for (const char* host :
       {"10.0.0.1", "0.0.0.0", "*", "eth0", "example.org", "::", "12.7.0.0", "127.example.org"}) {
    EXPECT_THAT(MessageOf(CheckMayListen(SecurityConfig::NONE, host)),
                AllOf(HasSubstr(host), HasSubstr("security.mode=TOKEN"), HasSubstr("tug keys")));
    EXPECT_FALSE(CheckMayListen(SecurityConfig::MODE_DEFAULT, host).ok());
    EXPECT_TRUE(CheckMayListen(SecurityConfig::TOKEN, host).ok());
    EXPECT_TRUE(CheckMayListen(SecurityConfig::CURVE, host).ok());
  }
}

TEST(CheckKeysFit, WantsTheJobsMode) {
  const JobKeys none;
  const JobKeys token{.mode = SecurityConfig::TOKEN};
  const JobKeys curve{.mode = SecurityConfig::CURVE};
  EXPECT_TRUE(CheckKeysFit(SecurityConfig::NONE, none).ok());
  EXPECT_TRUE(CheckKeysFit(SecurityConfig::MODE_DEFAULT, none).ok());
  EXPECT_TRUE(CheckKeysFit(SecurityConfig::TOKEN, token).ok());
  EXPECT_TRUE(CheckKeysFit(SecurityConfig::CURVE, curve).ok());
  EXPECT_THAT(MessageOf(CheckKeysFit(SecurityConfig::CURVE, none)),
              AllOf(HasSubstr("security.mode is CURVE"), HasSubstr("tug keys FILE --mode curve")));
  EXPECT_THAT(MessageOf(CheckKeysFit(SecurityConfig::TOKEN, curve)),
              AllOf(HasSubstr("the keys have mode curve"), HasSubstr("security.mode=CURVE")));
  EXPECT_THAT(MessageOf(CheckKeysFit(SecurityConfig::NONE, token)), HasSubstr("omit them"));
}

}  // namespace
}  // namespace tug
