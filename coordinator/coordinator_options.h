#ifndef TUG_COORDINATOR_COORDINATOR_OPTIONS_H_
#define TUG_COORDINATOR_COORDINATOR_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/best_checkpoint.h"
#include "coordinator/job_blocks.h"
#include "coordinator/progress.h"
#include "coordinator/timeline.h"

namespace tug {

class JournalBegin;

// What the coordinator of a job is made of.
struct CoordinatorOptions {
  JobConfig config;  // resolved and validated
  // Of the job file as nodes load it (proto/job_config.h); 0 = not checked.
  uint64_t fingerprint = 0;
  BlockLayout layout;   // model.external: that of the restored checkpoint, or empty
  uint64_t job = 0;     // id, random
  std::string run_dir;  // absolute
  TimelineStart start;  // `version` below train.steps
  // Of the run that goes on, in order: its evaluations up to `start.version`, and its best
  // checkpoint.
  std::vector<EvalMetrics> past_evals;
  std::optional<BestCheckpoint> best;
  // Whether somebody predicts step times, for comm.scheduler AUTO.
  bool predicts_steps = false;
  std::string data_notice;  // of the data, and of what is resumed, for people; may be empty
};

// The first record of a job's journal, and back.
JournalBegin BeginOf(const CoordinatorOptions& options);
CoordinatorOptions OptionsOf(const JournalBegin& begin);

}  // namespace tug

#endif  // TUG_COORDINATOR_COORDINATOR_OPTIONS_H_
