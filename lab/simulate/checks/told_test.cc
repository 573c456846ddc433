// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/checks/told.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/control.pb.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ToldTest : public ::testing::Test {
 protected:
  static StatusReply Done(uint64_t step, uint64_t checkpoint) {
    StatusReply status;
    status.set_phase(DONE);
    status.set_step(step);
    status.set_last_checkpoint(checkpoint);
    return status;
  }

  std::vector<std::string> untrue_;
  Told told_ = Told(0, 24, [this](const std::string& text) { untrue_.push_back(text); });
};

TEST_F(ToldTest, HasNothingAgainstWhatIsSo) {
  told_.OnCommitted(5);
  told_.OnNotice("server-2 was lost; the job rolls back to step 5 (or a later checkpoint)");
  told_.OnTimeline(5);
  told_.OnCommitted(6);
  told_.OnNotice("server-2 was lost; the job rolls back to step 5 (or a later checkpoint)");
  told_.OnCommitted(5);
  told_.OnStopAnswer("the job ends now, with the checkpoint of step 5");
  told_.OnDone(Done(5, 5));
  EXPECT_THAT(untrue_, IsEmpty());
}

TEST_F(ToldTest, FindsNoticesAndTimelinesThatNameAnotherCheckpoint) {
  told_.OnCommitted(5);
  told_.OnNotice("the job rolls back to step 10 (or a later checkpoint)");
  told_.OnTimeline(0);
  told_.OnNotice("the checkpoint has all steps: only the last evaluation is missing");
  told_.OnFailure("lost; resume with: tug train --resume run (step 10)");
  told_.OnFailure("lost; no checkpoint was written yet: start the job again");
  EXPECT_EQ(untrue_.size(), 5u);
}

TEST_F(ToldTest, FindsAnEndAtAStepThatIsNotSaved) {
  told_.OnCommitted(5);
  told_.OnStopAnswer("stopping after the step in progress, then a checkpoint");
  told_.OnDone(Done(24, 5));
  EXPECT_THAT(untrue_, ElementsAre(HasSubstr("ended at step 24, with the checkpoint of step 5"),
                                   HasSubstr("the summary reports \"done\"")));
}

TEST_F(ToldTest, FindsAnEndThatNobodyAskedFor) {
  told_.OnCommitted(5);
  told_.OnDone(Done(5, 5));
  EXPECT_THAT(untrue_, ElementsAre(HasSubstr("the job was not stopped")));
}

TEST_F(ToldTest, FindsAPromiseThatWasNotKept) {
  told_.OnStopAnswer("the job ends now, without a new checkpoint");
  told_.OnCommitted(5);
  told_.OnDone(Done(5, 5));
  EXPECT_THAT(untrue_, ElementsAre(HasSubstr("promised the checkpoint of step 0")));
}

TEST_F(ToldTest, FindsABestEvaluationOfAStepThatIsGone) {
  told_.OnCommitted(24);
  StatusReply status = Done(24, 24);
  status.mutable_best()->set_version(25);
  told_.OnDone(status);
  EXPECT_THAT(untrue_, ElementsAre(HasSubstr("the best evaluation is of step 25")));
}

TEST_F(ToldTest, AStopMayLeaveOpenWhatIsBeingWritten) {
  told_.OnStopAnswer(
      "the job ends now, without a new checkpoint, or with a later checkpoint that is being "
      "written");
  told_.OnCommitted(2);
  told_.OnDone(Done(2, 2));
  EXPECT_THAT(untrue_, IsEmpty());
}

}  // namespace
}  // namespace tug
