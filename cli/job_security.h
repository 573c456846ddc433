#ifndef TUG_CLI_JOB_SECURITY_H_
#define TUG_CLI_JOB_SECURITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "security/job_keys.h"

namespace tug {

// What a supervisor knows of the security of its job, and then does about it.
struct JobSecurity {
  // security.mode as the user wrote it; MODE_DEFAULT: not at all.
  SecurityConfig::Mode mode = SecurityConfig::MODE_DEFAULT;
  JobKeys keys;            // the user's; of mode NONE: there are none
  bool keys_made = false;  // for this job, by the supervisor
};

// Of a job file's text and what overrides it, before defaults. Errors: as ParseJobConfig.
absl::StatusOr<SecurityConfig::Mode> WrittenMode(const std::string& text, const std::string& source,
                                                 const std::vector<std::string>& overrides);

// Settles what the user has left open: a mode that is not written is that of the user's keys;
// without keys it is TOKEN where processes listen elsewhere than on loopback (`exposed`), else
// NONE. Makes keys where the mode needs some and the user gave none. Errors: keys that do not fit.
absl::Status Settle(JobSecurity& security, bool exposed);

// For the processes of a settled job: "security.mode=TOKEN".
std::string ModeOverride(const JobSecurity& security);

}  // namespace tug

#endif  // TUG_CLI_JOB_SECURITY_H_
