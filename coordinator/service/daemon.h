// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_DAEMON_H_
#define TUG_COORDINATOR_SERVICE_DAEMON_H_

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/control_client.h"
#include "coordinator/progress/schedule_tuning.h"
#include "proto/job.pb.h"
#include "security/job_keys.h"

namespace tug {

struct CoordinatorDaemonOptions {
  JobConfig config;     // as LoadJobConfig returns it
  HostPort listen;      // port 0 picks a free one
  std::string run_dir;  // empty: runs/<name>-<n>, or the folder of the resumed run
  std::string resume;   // run folder, or folder of a checkpoint; empty: a new run
  // Run folder of a job whose coordinator has died: this process recovers it, at the same address
  // and from its journal (journal.h). The fields above are ignored then.
  std::string recover;
  JobKeys keys;            // for the job's security.mode
  bool keep_keys = false;  // write them to kKeysFile in the run folder while the job runs
  std::string note;        // line to print at the start; may be empty
  // Command line that continues the job, without --resume; empty: that of the job's kind.
  std::string continue_with;
  bool launched = false;  // a launcher starts the nodes, and replacements for lost ones
  // Predicts the step times of a job, for comm.scheduler AUTO. Called on its own thread; may take
  // long, but must check `stop` often. After an error tuning continues without a prediction. Null:
  // no predictions.
  std::function<absl::StatusOr<std::vector<double>>(
      const JobConfig& config, const StepPredictionWanted& wanted, const std::stop_token& stop)>
      predict_steps;
  // Sends user-facing lines to the log (base/log.h), without step progress.
  bool say_in_log = false;
  // Called once, when nodes can join.
  std::function<void(const std::string& address, const std::string& run_dir)> on_listening;
  // Polled several times a second: whether the user wants an orderly end.
  std::function<bool()> stop_wanted;
};

// Runs a coordinator process: prepares the run folder, serves nodes until the job has ended, writes
// metrics and a journal, and shows progress on stderr. OK: done, or stopped in order. Errors: one
// line with what to do. Blocks; one per process.
absl::Status RunCoordinator(const CoordinatorDaemonOptions& options);

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_DAEMON_H_
