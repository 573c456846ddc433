#ifndef TUG_CLI_WORKED_OUT_STEPS_H_
#define TUG_CLI_WORKED_OUT_STEPS_H_

#include <string>

#include "absl/status/status.h"
#include "experiment/scheduling_results.h"

namespace tug {

// Lower bound (of `c`) and prediction (of `policy`) of a replay that ran under `policy` on hosts of
// deploy/testbed, all nodes on hosts of their own: from the configuration in its run folder, with
// `auto` under what it settled on. Not predicted: an `auto` that had not settled, whose steps were
// of several schedules. Errors: those of reading the folder, and of simulate/scheduling.h.
absl::Status WorkOutSteps(const std::string& run_dir, double link_bytes_per_second,
                          SchedulingCase& c, PolicyResult& policy);

}  // namespace tug

#endif  // TUG_CLI_WORKED_OUT_STEPS_H_
