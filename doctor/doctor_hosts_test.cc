// SPDX-License-Identifier: Apache-2.0
// Tests `tug doctor` with shell programs as probes: hosts that do not reply as they should. Tests
// with real probes: tests/hosts/doctor_test.cc.

#include "doctor/doctor_hosts.h"

#include <signal.h>

#include "absl/strings/str_cat.h"
#include "base/files/test_folder.h"
#include "doctor/doctor_probe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

class ProbedHostsTest : public ::testing::Test {
 protected:
  ProbedHostsTest() : hosts_(folder_.path()) { signal(SIGPIPE, SIG_IGN); }
  void Add(const std::string& script) {
    const absl::Status added = hosts_.Add("host", {"/bin/sh", "-c", script}, "127.0.0.1", {});
    ASSERT_TRUE(added.ok()) << added;
  }
  static std::string Answering(const std::string& json) {
    return absl::StrCat("while read line; do echo hello; echo '", kProbePrefix, json, "'; done");
  }
  std::string Error() { return std::string(hosts_.ReadFacts({}).status().message()); }

  const TestFolder folder_;
  ProbedHosts hosts_;
};

TEST_F(ProbedHostsTest, SaysWhatAProbeThatEndedSaidLast) {
  Add("read line; echo 'tug: error: no such thing' >&2");
  EXPECT_THAT(Error(), HasSubstr("the connection to host is lost: no such thing"));
}

TEST_F(ProbedHostsTest, PassesAnErrorOn) {
  Add(Answering("{\"error\": \"no way\"}"));
  EXPECT_EQ(Error(), "no way");
}

TEST_F(ProbedHostsTest, RefusesWhatIsNoAnswer) {
  Add(Answering("nonsense"));
  EXPECT_THAT(Error(), HasSubstr("host sent an invalid answer"));
}

TEST_F(ProbedHostsTest, RefusesFactsThatAreNone) {
  Add(Answering("{\"version\": \"tug 1\"}"));
  EXPECT_THAT(Error(), HasSubstr("invalid facts of a host"));
}

TEST_F(ProbedHostsTest, FindsAFolderThatIsNotShared) {
  Add(Answering("{\"path\": \"/a/b\", \"sees\": true}"));
  Add(Answering("{\"sees\": true}"));
  Add(Answering("{\"sees\": false}"));
  const auto findings = hosts_.CheckSharedFolder(0, "/a", {1, 2});
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_EQ((*findings)[0].level, FindingLevel::kOk);
  EXPECT_EQ((*findings)[1].level, FindingLevel::kProblem);
  EXPECT_THAT((*findings)[1].what, HasSubstr("does not see files that host writes in /a"));
}

TEST_F(ProbedHostsTest, MakesAFindingOfALinkThatFails) {
  Add(Answering("{\"error\": \"cannot connect: refused\"}"));
  Add(Answering("{\"address\": \"127.0.0.1\", \"port\": 1}"));
  const auto links = hosts_.MeasureLinks(absl::Milliseconds(1), [](const auto&, const auto&) {});
  ASSERT_TRUE(links.ok()) << links.status();
  EXPECT_TRUE(links->measured.empty());
  ASSERT_EQ(links->findings.size(), 1u);
  EXPECT_EQ(links->findings[0].check, kConnectionCheck);
  EXPECT_THAT(links->findings[0].what, HasSubstr("refused"));
}

}  // namespace
}  // namespace tug
