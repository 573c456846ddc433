// SPDX-License-Identifier: Apache-2.0
// deploy/count_tests: summarizes the events of a `bazel test`.

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

class CountTestsTest : public TugTest {};

TEST_F(CountTestsTest, ReadsResultsInAFolderWithASpaceInItsName) {
  std::filesystem::create_directory(Path("my tests"));
  Write("my tests/test.xml",
        "<testsuites><testsuite tests='5' failures='1' skipped='1'>"
        "<testcase><skipped message='a_test.cc:7&#10;skipped: no GPU'/></testcase>"
        "</testsuite></testsuites>");
  const std::string uri =
      absl::StrReplaceAll(absl::StrCat("file://", Path("my tests/test.xml")), {{" ", "%20"}});
  Write("events",
        absl::StrCat(R"({"id":{"targetConfigured":{"label":"//:a"}},"configured":{"testSize":"S"}})"
                     "\n"
                     R"({"id":{"testResult":{"label":"//:a"}},"testResult":{"status":"FAILED",)"
                     R"("testActionOutput":[{"name":"test.xml","uri":")",
                     uri, "\"}]}}\n"));
  Process& process = StartProgram("deploy/count_tests", {Path("events"), "3"});
  ASSERT_TRUE(process.WaitForEnd(After(kPatience)));
  EXPECT_EQ(process.exit_code(), 0) << process.err();
  EXPECT_EQ(process.out(),
            "3 1\n1 test targets, 0 of them not run; 1 test cases skipped\n  1: skipped: no GPU\n");
}

}  // namespace
}  // namespace tug
