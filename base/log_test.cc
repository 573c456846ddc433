// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using ::testing::MatchesRegex;

// Returns the stderr output of `say`.
template <typename Say>
std::string Said(Say say) {
  ::testing::internal::CaptureStderr();
  say();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, WritesOneLineOfText) {
  SetLogFormat(LogFormat::kText);
  SetLogProcess("worker-2");
  EXPECT_THAT(Said([] {
                LogWarning("it does not answer", {{"address", "a:1"}, {"why", "no\nway"}});
              }),
              MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]{3}Z warning worker-2: it does not answer "
                           "address=a:1 why=\"no\\\\nway\"\n"));
}

TEST(Log, NamesTheCoordinator) {
  SetLogFormat(LogFormat::kText);
  SetLogProcess("coordinator");
  EXPECT_THAT(Said([] { LogInfo("it goes on"); }),
              MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]{3}Z info coordinator: it goes on\n"));
}

TEST(Log, WritesJsonForMachines) {
  SetLogFormat(LogFormat::kJson);
  SetLogProcess("server-1");
  const std::string said = Said([] { LogError("\"quoted\"\nand more", {{"step", "12"}}); });
  ASSERT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  const auto json = nlohmann::json::parse(said);
  EXPECT_THAT(json["time"].get<std::string>(), MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]{3}Z"));
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["process"], "server-1");
  EXPECT_EQ(json["message"], "\"quoted\"\nand more");
  EXPECT_EQ(json["step"], "12");
}

TEST(Log, CopiesLinesToAFile) {
  const std::string path = testing::TempDir() + "/copy.log";
  EXPECT_FALSE(SetLogFile("/dev/null/copy.log").ok());
  LogInFile(LogLevel::kInfo, "lost: no file yet");
  SetLogFormat(LogFormat::kText);
  ASSERT_TRUE(SetLogFile(path).ok());
  SetLogProcess("coordinator");
  EXPECT_NE(Said([] { LogInfo("both", {{"step", "12"}}); }), "");
  EXPECT_EQ(Said([] { LogInFile(LogLevel::kWarning, "file alone"); }), "");
  std::ifstream file(path);
  std::string first, second, third;
  std::getline(file, first);
  std::getline(file, second);
  EXPECT_THAT(first, MatchesRegex("[0-9-]+T[0-9:.]+Z info coordinator: both step=12"));
  EXPECT_THAT(second, MatchesRegex("[0-9-]+T[0-9:.]+Z warning coordinator: file alone"));
  EXPECT_FALSE(std::getline(file, third));
}

TEST(Log, KnowsItsFormats) {
  EXPECT_EQ(ParseLogFormat("text"), LogFormat::kText);
  EXPECT_EQ(ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_EQ(ParseLogFormat("xml"), std::nullopt);
}

}  // namespace
}  // namespace tug
