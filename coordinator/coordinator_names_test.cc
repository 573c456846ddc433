// SPDX-License-Identifier: Apache-2.0
// Names of a job's nodes, and of their replacements.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/coordinator.h"
#include "coordinator/coordinator_test_support.h"
#include "coordinator/journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CoordinatorNamesTest : public ::testing::Test {
 protected:
  CoordinatorNamesTest() { job_.coordinator().KeepJournal(&journal_); }

  // Returns the name that the node is told.
  std::string Join(NodeKind kind, uint64_t incarnation,
                   std::optional<uint32_t> wish = std::nullopt) {
    RegisterRequest request = job_.Request(kind, incarnation);
    if (wish.has_value()) request.set_index(*wish);
    const auto reply = job_.coordinator().OnRegister(request, job_.now());
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->name() : "";
  }
  // Each node's name and life, in the order in which they joined.
  static std::vector<std::string> NamesOf(const StatusReply& status) {
    std::vector<std::string> names;
    for (const NodeStatus& node : status.nodes()) {
      names.push_back(absl::StrCat(node.name(), " ", node.life()));
    }
    return names;
  }
  std::vector<std::string> Names() { return NamesOf(job_.coordinator().OnStatus(job_.now())); }
  std::string Notices() {
    std::string all;
    for (const NoticeAction& notice : job_.Take<NoticeAction>()) all += notice.text + "\n";
    return all;
  }

  JobUnderTest job_{JobUnderTest::Options(1, 3, 10, 0, 3)};
  MemoryJournal journal_;
};

TEST_F(CoordinatorNamesTest, NodesHaveTheNamesThatTheirLaunchersKnow) {
  EXPECT_EQ(Join(WORKER, 11, 2), "worker-2");
  EXPECT_EQ(Join(WORKER, 12, 0), "worker-0");
  EXPECT_EQ(Join(WORKER, 13), "worker-1") << "the first free one";
  EXPECT_EQ(Join(SERVER, 14), "server-0");
  EXPECT_EQ(Join(WORKER, 11, 2), "worker-2") << "repeated";
  EXPECT_THAT(Names(), ElementsAre("worker-2 1", "worker-0 1", "worker-1 1", "server-0 1"));
  EXPECT_THAT(Notices(), Not(HasSubstr("has joined")));
}

TEST_F(CoordinatorNamesTest, AReplacementHasTheNameOfTheLostNode) {
  for (uint32_t i = 0; i < 3; ++i) Join(WORKER, 11 + i, i);
  job_.coordinator().OnGone(2, kJob, job_.now());
  EXPECT_THAT(Notices(), HasSubstr("worker-1 (host, pid 12) was lost"));
  EXPECT_EQ(Join(WORKER, 21, 1), "worker-1");
  EXPECT_EQ(Notices(), "worker-1 (second life) has joined: host, pid 21\n");
  EXPECT_THAT(Names(), ElementsAre("worker-0 1", "worker-2 1", "worker-1 2"));
}

TEST_F(CoordinatorNamesTest, ALivingNodeKeepsItsName) {
  EXPECT_EQ(Join(WORKER, 11, 0), "worker-0");
  EXPECT_EQ(Join(WORKER, 12, 0), "worker-1");
}

TEST_F(CoordinatorNamesTest, ARecoveredCoordinatorKnowsTheNames) {
  for (uint32_t i = 0; i < 3; ++i) Join(WORKER, 11 + i, 2 - i);
  job_.coordinator().OnGone(1, kJob, job_.now());
  Join(WORKER, 21, 2);
  Coordinator again(JobUnderTest::Options(1, 3, 10, 0, 3));
  for (const JournalRecord& record : journal_.records()) ASSERT_TRUE(again.Replay(record).ok());
  EXPECT_EQ(NamesOf(again.OnStatus(job_.now())), Names());
  EXPECT_THAT(Names(), ElementsAre("worker-1 1", "worker-0 1", "worker-2 2"));
}

}  // namespace
}  // namespace tug
