// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/shown_text.h"

#include <gtest/gtest.h>

#include "coordinator/coordinator_test_support.h"

namespace tug {
namespace {

TEST(ShownText, HasNoControlCharacters) {
  EXPECT_EQ(Shown("\x1b]0;owned\x07\x1b[2J\r\nnext\x7f"), " ]0;owned  [2J  next ");
  EXPECT_EQ(Shown("a\xC2\x9B"
                  "31mb"),
            "a  31mb")
      << "CSI as one character";
  EXPECT_EQ(Shown("M\xC3\xBCnchen \xE2\x82\xAC"), "M\xC3\xBCnchen \xE2\x82\xAC");
  EXPECT_EQ(Shown(std::string(3000, 'x')).size(), kMaxShownBytes);
  EXPECT_EQ(Shown("abc\xE2\x82\xAC", 5), "abc") << "no half character";
}

TEST(ShownText, KnowsEndpoints) {
  for (const char* endpoint : {"10.0.0.2:9464", "node-a.example:1", "[::1]:9464"}) {
    EXPECT_TRUE(IsEndpoint(endpoint)) << endpoint;
  }
  for (const char* other :
       {"", "10.0.0.2", "http://evil:1", "evil\"\n<script>:1", "a b:1", ":1", "a:70000", "a:1x"}) {
    EXPECT_FALSE(IsEndpoint(other)) << other;
  }
}

TEST(ShownText, IsWhatACoordinatorTells) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  HeartbeatRequest beat = job.Beat(2);
  beat.set_metrics_endpoint("evil\"\n<script>:1");
  Notice& notice = *beat.add_notices();
  notice.set_key("k");
  notice.set_text("\x1b[2Jgone\nworker-0 was lost");
  job.Send(beat);
  const auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].text, " [2Jgone worker-0 was lost");
  const StatusReply status = job.coordinator().OnStatus(job.now());
  for (const NodeStatus& node : status.nodes()) EXPECT_EQ(node.metrics_endpoint(), "");
  HeartbeatRequest last = job.Beat(2);
  last.set_failure("\x1b[2J\nbroken");
  job.Send(last);
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).failure().find_first_of("\x1b\n"),
            std::string::npos);
}

TEST(ShownText, RefusesALaneThatIsNoAddress) {
  JobUnderTest job(1, 1);
  RegisterRequest request = job.Request(SERVER, 1);
  ASSERT_TRUE(job.coordinator().OnRegister(request, job.now()).ok());
  request.add_lane_endpoints("tcp://h:1\n");
  request.add_lane_endpoints("tcp://h:2");
  EXPECT_EQ(job.coordinator().OnRegister(request, job.now()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ShownText, CutsNamesOfAlgorithms) {
  HeartbeatRequest beat;
  ShowTexts(beat);
  EXPECT_FALSE(beat.has_activity()) << "none was sent";
  for (int i = 0; i < 20; ++i) beat.mutable_activity()->add_algorithms(std::string(100, '\n'));
  ShowTexts(beat);
  EXPECT_EQ(beat.activity().algorithms_size(), 8);
  EXPECT_EQ(beat.activity().algorithms(0), std::string(40, ' '));
}

}  // namespace
}  // namespace tug
