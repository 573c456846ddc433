// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_NEXT_LINES_H_
#define TUG_COORDINATOR_MEMBERSHIP_NEXT_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tug {

class JobConfig;

// Commands that a user can run next with a run. Pure.

// Outcome of a job that has ended without a failure.
struct RunOutcome {
  std::string run;  // path of the run folder
  // Command line that continues the job, without --resume; empty: that of the job's kind.
  std::string continue_with = {};
  uint64_t checkpoint = 0;     // step of the newest checkpoint; 0: none
  bool complete = false;       // all steps are done
  bool stopped_early = false;  // by train.patience
  bool explainable = false;    // a trace with critical paths was recorded
};

// "tug train --resume runs/a". REQUIRES: the run has a checkpoint.
std::string ResumeCommand(const JobConfig& job, const std::string& run,
                          const std::string& continue_with);

// Lines for the end of a job's output. Each names only commands that work for this run.
std::vector<std::string> NextLines(const JobConfig& job, const RunOutcome& outcome);

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_NEXT_LINES_H_
