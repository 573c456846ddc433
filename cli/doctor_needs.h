#ifndef TUG_CLI_DOCTOR_NEEDS_H_
#define TUG_CLI_DOCTOR_NEEDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/doctor_checks.h"
#include "cli/hosts_file.h"
#include "proto/job.pb.h"

namespace tug {

// What a job is to have on each of the hosts, as `tug launch` deals its processes; compute_threads
// is left 0. `job`: as LoadJobConfig has it. Errors: those of DealProcesses. Pure.
absl::StatusOr<std::vector<HostNeeds>> NeedsOf(const JobConfig& job,
                                               const std::vector<LaunchHost>& hosts);

// Of a host with so many cores. Where the job leaves cluster.compute_threads open, workers divide
// the cores among themselves, and leave some to servers only with `tug train`, `local`. Pure.
int ComputeThreads(const JobConfig& job, const HostNeeds& needs, int cores, bool local);

// What a worker sends and receives in a step at most, each way; 0: not known (codecs, other
// programs' models). Pure.
uint64_t ExchangedBytes(const JobConfig& job);

}  // namespace tug

#endif  // TUG_CLI_DOCTOR_NEEDS_H_
