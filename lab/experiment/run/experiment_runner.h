// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_RUNNER_H_
#define TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_RUNNER_H_

// `tug experiment FILE`: runs the cases of an experiment file and reports on them.
//
// The folder OUT:
//   experiment.textproto   the experiment file
//   experiment.json        what its results depend on (ExperimentPlan::Identity)
//   job.textproto          the job of all cases; text.txt: the made-up text, if any
//   rows.jsonl             a line per completed run (lab/experiment/results/experiment_rows.h)
//   runs/                  their run folders, and the output of coordinators
//   report.html, report.md, figure-N.svg
//
//   1. Checks the whole file: every case is a job that the validator accepts.
//   2. Runs all cases in each repeat, so that drift of the machine affects all cases alike. Cases
//      of one link are neighbours, since hosts are created for each link.
//   3. Syncs a row to storage before the next run begins. Started again with the same file, it
//      skips runs that have a row; a run that was cut off is run again.
//   4. A failed run has a row too, with the reason; the others continue.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tug {

struct ExperimentFileArguments {
  std::string file;  // or the name of a built-in one
  std::string out;   // empty: runs/NAME
  std::vector<std::string> settings;
  std::optional<uint32_t> repeats;
  std::string only_case;  // some values of axes, "case=ring, link=none"; empty: all cases
  bool dry_run = false;
  bool retry_failed = false;
  std::string command;  // the full command line
};

// Errors: those of the file (PlanExperiment); FAILED_PRECONDITION: OUT belongs to another
// experiment, or is in use; CANCELLED: interrupted, can be continued; ABORTED: runs have failed.
// REQUIRES: the process has one thread.
absl::Status RunExperimentFile(const ExperimentFileArguments& arguments);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_RUNNER_H_
