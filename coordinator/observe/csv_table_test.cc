// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/csv_table.h"

#include <fstream>
#include <sstream>
#include <string>

#include "base/files/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kHeader[] = "timeline,step,loss";

class CsvTableTest : public ::testing::Test {
 protected:
  CsvTable Open(bool taken_up = false) {
    absl::StatusOr<CsvTable> table = CsvTable::Open(path_, kHeader, taken_up);
    EXPECT_TRUE(table.ok()) << table.status();
    return *std::move(table);
  }
  std::string Text() const {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  const TestFolder folder_;
  const std::string path_ = folder_.path() + "/steps.csv";
};

TEST_F(CsvTableTest, HasOneHeaderHoweverOftenItIsOpened) {
  Open().Row(1, 1, "2.5");
  Open().Row(2, 1, "2.25");
  EXPECT_EQ(Text(), "timeline,step,loss\n1,1,2.5\n2,1,2.25\n");
}

TEST_F(CsvTableTest, CutsOffARowThatIsNotWhole) {
  Open().Row(1, 1, "2.5");
  Append("1,2,2.");
  Open().Row(1, 2, "2.25");
  EXPECT_EQ(Text(), "timeline,step,loss\n1,1,2.5\n1,2,2.25\n");
}

TEST_F(CsvTableTest, WritesAHeaderThatIsNotWholeAgain) {
  Append("timeline,st");
  Open().Row(1, 1, "2.5");
  EXPECT_EQ(Text(), "timeline,step,loss\n1,1,2.5\n");
}

TEST_F(CsvTableTest, TakenUpRepeatsNoRow) {
  {
    CsvTable table = Open();
    table.Row(1, 1, "2.5");
    table.Row(1, 2, "2.25");
  }
  CsvTable table = Open(/*taken_up=*/true);
  table.Row(1, 1, "2.5");
  table.Row(1, 2, "2.25");
  table.Row(1, 3, "2");
  table.Row(2, 2, "2.1");
  EXPECT_EQ(Text(), "timeline,step,loss\n1,1,2.5\n1,2,2.25\n1,3,2\n2,2,2.1\n");
}

TEST_F(CsvTableTest, LeavesAFileWithOtherColumnsAlone) {
  Append("a,b\n1,2\n");
  const absl::StatusOr<CsvTable> table = CsvTable::Open(path_, kHeader, false);
  EXPECT_THAT(std::string(table.status().message()),
              AllOf(HasSubstr(path_), HasSubstr("move the file")));
  EXPECT_EQ(Text(), "a,b\n1,2\n");
}

}  // namespace
}  // namespace tug
