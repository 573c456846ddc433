#ifndef TUG_COORDINATOR_DAEMON_H_
#define TUG_COORDINATOR_DAEMON_H_

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/schedule_tuning.h"
#include "proto/control_client.h"
#include "proto/job.pb.h"
#include "security/job_keys.h"

namespace tug {

struct CoordinatorDaemonOptions {
  JobConfig config;     // as LoadJobConfig returns it
  HostPort listen;      // port 0 picks a free one
  std::string run_dir;  // empty: runs/<name>-<n>, or the folder of the run that is resumed
  std::string resume;   // run folder, or folder of a checkpoint; empty: a new run
  // Run folder of a job whose coordinator has died: this process takes it up, at the same address
  // and with all that it had been told (journal.h). Of the others above nothing is read then.
  std::string take_up;
  JobKeys keys;            // of the job's security.mode
  bool keep_keys = false;  // as kKeysFile in the run folder, while the job runs
  std::string note;        // a line to say at the start; may be empty
  // Predicts the step times of a job, for comm.scheduler AUTO; called on a thread of its own, and
  // may take a while, but looks at `stop` often. After an error tuning goes on without. None:
  // nothing is predicted.
  std::function<absl::StatusOr<std::vector<double>>(
      const JobConfig& config, const StepPredictionWanted& wanted, const std::stop_token& stop)>
      predict_steps;
  // What is for people goes to the log (base/log.h), without the progress of steps.
  bool say_in_log = false;
  // Called once, when nodes can join.
  std::function<void(const std::string& address, const std::string& run_dir)> on_listening;
  // Asked several times a second: whether the user wants an orderly end.
  std::function<bool()> stop_wanted;
};

// A coordinator process: prepares the run folder, serves nodes until the job has ended, keeps
// metrics, a journal and shows progress on stderr. OK: done, or stopped in order. Errors: one line
// with what to do. Blocks; one per process.
absl::Status RunCoordinator(const CoordinatorDaemonOptions& options);

}  // namespace tug

#endif  // TUG_COORDINATOR_DAEMON_H_
