#ifndef TUG_CLI_EXPERIMENT_RUNNER_H_
#define TUG_CLI_EXPERIMENT_RUNNER_H_

// `tug experiment FILE`: runs what an experiment file comes to, and reports on it.
//
// The folder OUT:
//   experiment.textproto   the file as it was
//   experiment.json        what its results rest on (ExperimentPlan::Identity)
//   job.textproto          the job of all cases; text.txt: the made-up text, if there is one
//   rows.jsonl             a line for every run that has ended (experiment/experiment_rows.h)
//   runs/                  their run folders, and what coordinators said
//   report.html, report.md, figure-N.svg
//
//   1. The whole file is checked: every case is a job that the validator takes.
//   2. Repeats one after the other, all cases in each: what drifts on the machine meets all cases
//      alike. Cases of one link are neighbours, since hosts are made for each link.
//   3. A row is on storage before the next run begins. Started again, with the same file, runs that
//      have a row are not made again; a run that was cut off is.
//   4. A run that fails has a row too, with the reason, and the others go on.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tug {

struct ExperimentFileArguments {
  std::string file;  // or the name of one that is built in
  std::string out;   // empty: runs/NAME
  std::vector<std::string> settings;
  std::optional<uint32_t> repeats;
  std::string only_case;  // some values of axes, "case=ring, link=none"; empty: all cases
  bool dry_run = false;
  bool retry_failed = false;
  std::string command;  // the whole line
};

// Errors: those of the file (PlanExperiment); FAILED_PRECONDITION: OUT is of another experiment, or
// in use; CANCELLED: an interrupt, after which it can be gone on with; ABORTED: runs have failed.
// REQUIRES: the process has one thread.
absl::Status RunExperimentFile(const ExperimentFileArguments& arguments);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_RUNNER_H_
