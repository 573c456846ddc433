// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_JOB_SECURITY_H_
#define TUG_LAUNCH_JOB_SECURITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "security/job_keys.h"

namespace tug {

// Security settings of a job, as known to its supervisor.
struct JobSecurity {
  // security.mode as the user wrote it; MODE_DEFAULT: not set.
  SecurityConfig::Mode mode = SecurityConfig::MODE_DEFAULT;
  JobKeys keys;            // the user's; mode NONE: no keys
  bool keys_made = false;  // the supervisor made `keys` for this job
};

// Mode in a job file's text and its overrides, before defaults. Errors: as ParseJobConfig.
absl::StatusOr<SecurityConfig::Mode> WrittenMode(const std::string& text, const std::string& source,
                                                 const std::vector<std::string>& overrides);

// Fills in what the user left open. An unset mode becomes that of the user's keys; without keys
// TOKEN if processes listen on addresses other than loopback (`exposed`), else NONE. Makes keys if
// the mode needs them and the user gave none. Errors: keys do not fit the mode.
absl::Status Settle(JobSecurity& security, bool exposed);

// Override for the processes of a settled job: "security.mode=TOKEN".
std::string ModeOverride(const JobSecurity& security);

}  // namespace tug

#endif  // TUG_LAUNCH_JOB_SECURITY_H_
