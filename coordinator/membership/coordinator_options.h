// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_COORDINATOR_OPTIONS_H_
#define TUG_COORDINATOR_MEMBERSHIP_COORDINATOR_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "blocks/job_blocks.h"
#include "checkpoint/best_checkpoint.h"
#include "coordinator/progress/progress.h"
#include "coordinator/progress/timeline.h"

namespace tug {

class JournalBegin;

// Inputs from which the coordinator of a job is built.
struct CoordinatorOptions {
  JobConfig config;  // resolved and validated
  // Fingerprint of the job file as nodes load it (config/job_config.h); 0: not checked.
  uint64_t fingerprint = 0;
  BlockLayout layout;   // model.external: from the restored checkpoint, or empty
  uint64_t job = 0;     // random id
  std::string run_dir;  // absolute
  TimelineStart start;  // `version` below train.steps
  // Evaluations of the resumed run up to `start.version`, in order, and its best checkpoint.
  std::vector<EvalMetrics> past_evals;
  std::optional<BestCheckpoint> best;
  // Whether step times can be predicted, for comm.scheduler AUTO.
  bool predicts_steps = false;
  // Command line that continues the job, without --resume (next_lines.h). Not in the journal: it is
  // that of the process which runs the job now.
  std::string continue_with;
  // Whether a launcher starts the nodes, and replacements for lost ones. Not in the journal either.
  bool launched = false;
  std::string data_notice;  // user-facing notice about the data and the resumed run; may be empty
  // Settings that differ from those of the checkpoint of `start`: "train.steps 300 -> 600".
  std::vector<std::string> changed_settings;
};

// Convert to and from the first record of a job's journal.
JournalBegin BeginOf(const CoordinatorOptions& options);
CoordinatorOptions OptionsOf(const JournalBegin& begin);

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_COORDINATOR_OPTIONS_H_
