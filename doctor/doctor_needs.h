// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DOCTOR_DOCTOR_NEEDS_H_
#define TUG_DOCTOR_DOCTOR_NEEDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "doctor/doctor_checks.h"
#include "launch/hosts/hosts_file.h"
#include "proto/job.pb.h"

namespace tug {

// Requirements of a job on each of the hosts, with processes assigned as by `tug launch`;
// compute_threads stays 0. `job`: as returned by LoadJobConfig. Errors: those of DealProcesses.
// Pure.
absl::StatusOr<std::vector<HostNeeds>> NeedsOf(const JobConfig& job,
                                               const std::vector<LaunchHost>& hosts);

// Compute threads of a host with this many cores. If the job leaves cluster.compute_threads open,
// workers divide the cores; only with `tug train` (`local`) are some left to servers. Pure.
int ComputeThreads(const JobConfig& job, const HostNeeds& needs, int cores, bool local);

// Upper bound of the bytes a worker sends and receives per step, each way; 0: unknown (codecs,
// external models). Pure.
uint64_t ExchangedBytes(const JobConfig& job);

}  // namespace tug

#endif  // TUG_DOCTOR_DOCTOR_NEEDS_H_
