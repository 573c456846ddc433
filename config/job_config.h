// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_JOB_CONFIG_H_
#define TUG_CONFIG_JOB_CONFIG_H_

// The single configuration of a job: the process that starts the job loads and validates it once;
// the coordinator sends it to every node. proto/job.proto has its fields with defaults and ranges,
// config/validity_rules.cc the invalid combinations.
// All functions are pure or only read the job file; thread-safe.

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/job_rules.h"
#include "proto/job.pb.h"

namespace tug {

// Limit of a resolved configuration: together with the job's blocks it is sent to every node in one
// message of at most kMaxControlMessageBytes (control/control_client.h).
inline constexpr uint64_t kMaxJobConfigBytes = uint64_t{12} << 20;
// The same configuration as text.
inline constexpr uint64_t kMaxJobTextBytes = kMaxJobConfigBytes * 4;

// Limit of a job file, which may be the configuration of a run.
inline constexpr uint64_t kJobFileLimitBytes = kMaxJobTextBytes;

// Reads a text-proto job file, applies overrides ("train.steps=100") in order, fills in defaults
// and validates. A job file may be the configuration of a run: what a coordinator filled in
// (data.resolved_*) is ignored in it, and refused in overrides. Errors, one line each: NOT_FOUND
// (file, or field of an override), INVALID_ARGUMENT (syntax with line and column; range;
// combination).
absl::StatusOr<JobConfig> LoadJobConfig(const std::string& path,
                                        std::span<const std::string> overrides);

// LoadJobConfig for text in memory; `source` names it in errors.
absl::StatusOr<JobConfig> ParseJobConfig(const std::string& text, const std::string& source,
                                         std::span<const std::string> overrides);

// The fields that a job file and its overrides set, without defaults and checks of their values.
// Errors: INVALID_ARGUMENT as ParseJobConfig, for text that is no job file.
absl::StatusOr<JobConfig> ParseJobFields(const std::string& text, const std::string& source,
                                         std::span<const std::string> overrides);

// Applies one "path.to.field=value".
absl::Status ApplyOverride(JobConfig& config, const std::string& override_text);

// Sets every unset field to its default. `cores`: of this machine, for cluster.lanes_per_server.
void FillDefaults(JobConfig& config, uint32_t cores);
void FillDefaults(JobConfig& config);  // with the cores that this process may use

// The fields that define a job's identity: without those that a coordinator fills in, that may
// differ between the nodes of a job, or that belong to one start of it (trace, watch, security).
JobConfig IdentityOf(JobConfig config);

// Identity of a configuration with defaults filled in: equal for two nodes that would compute the
// same job. Excludes data.resolved_*, cluster.lanes_per_server, compute_threads and pin_threads,
// which may differ between machines, and trace, watch and security.
uint64_t Fingerprint(const JobConfig& config);

}  // namespace tug

#endif  // TUG_CONFIG_JOB_CONFIG_H_
