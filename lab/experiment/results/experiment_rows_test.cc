// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/experiment_rows.h"

#include <fstream>

#include "base/files/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ExperimentRow Row(uint32_t repeat) {
  return {.case_name = "policy=a\n\"sp\", workers=4",
          .repeat = repeat,
          .seed = 18446744073709551615u,
          .error = "",
          .folder = "runs/001-r1",
          .settings = {"a.b=\"c\"", "d=1"},
          .measures = {{"final_loss", std::nullopt}, {"step_time", 0.1}},
          .links = {{1, 18446744073709551615u}, {3, 4}},
          .origin = {.started = "2026-01-02T03:04:05Z",
                     .command = "tug train 'a b'",
                     .version = "tug 1",
                     .build = "abc",
                     .commit = "def + changes",
                     .machine = "a machine"}};
}

void ExpectSame(const ExperimentRow& a, const ExperimentRow& b) {
  EXPECT_EQ(RowLine(a), RowLine(b));
}

TEST(ExperimentRows, AreReadAsTheyWereWritten) {
  const std::string line = RowLine(Row(2));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  const auto row = ParseRow(line);
  ASSERT_TRUE(row.ok());
  ExpectSame(*row, Row(2));
  EXPECT_EQ(row->seed, 18446744073709551615u);
  EXPECT_EQ(row->Find("step_time"), 0.1);
  EXPECT_EQ(row->Find("final_loss"), std::nullopt);
  EXPECT_EQ(row->Find("no_such"), std::nullopt);
  ASSERT_EQ(row->links.size(), 2u);
  EXPECT_EQ(row->links[0].received_bytes, 18446744073709551615u);
}

TEST(ExperimentRows, AreAppendedBehindWhatIsWhole) {
  const TestFolder folder;
  const std::string path = folder.path() + "/rows.jsonl";
  EXPECT_TRUE(ReadRows(path)->rows.empty()) << "there is no file";
  auto bytes = AppendRow(path, 0, Row(0));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  bytes = AppendRow(path, *bytes, Row(1));
  ASSERT_TRUE(bytes.ok());
  // A line cut off by a crash.
  std::ofstream(path, std::ios::app) << RowLine(Row(2)).substr(0, 40);
  auto read = ReadRows(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->rows.size(), 2u);
  EXPECT_EQ(read->whole_bytes, *bytes);
  bytes = AppendRow(path, read->whole_bytes, Row(2));
  read = ReadRows(path);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->rows.size(), 3u);
  ExpectSame(read->rows[2], Row(2));
}

TEST(ExperimentRows, NameALineThatIsDamaged) {
  const TestFolder folder;
  const std::string path = folder.path() + "/rows.jsonl";
  std::ofstream(path) << RowLine(Row(0)) << "\n{\"case\": 3}\n";
  const auto read = ReadRows(path);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("rows.jsonl:2:"));
}

TEST(ExperimentRows, TakeNothingForARowThatIsNone) {
  for (const char* line : {"", "{", "[]", "3", "{}", "{\"case\":\"\"}", "null"}) {
    EXPECT_FALSE(ParseRow(line).ok()) << line;
  }
  EXPECT_TRUE(ParseRow("{\"case\":\"a\",\"measures\":[],\"set\":3,\"repeat\":-1}").ok());
}

}  // namespace
}  // namespace tug
