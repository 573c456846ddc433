#ifndef TUG_PROTO_JOB_CONFIG_H_
#define TUG_PROTO_JOB_CONFIG_H_

// The one configuration of a job: loaded and validated once, by whoever starts it; the coordinator
// hands it to every node. Its fields are described in proto/job.proto, its defaults and ranges in
// proto/job_rules.cc. All functions are pure or only read the job file; thread-safe.

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/job_rules.h"

namespace tug {

// A resolved configuration is no larger: with the job's blocks it goes to every node in one message
// of at most kMaxControlMessageBytes (proto/control_client.h).
inline constexpr uint64_t kMaxJobConfigBytes = uint64_t{12} << 20;

// Of a job file, as a person writes it.
inline constexpr uint64_t kJobFileLimitBytes = uint64_t{1} << 20;

// Reads a text-proto job file, applies overrides ("train.steps=100") in order, fills in defaults
// and validates. Errors, one line each: NOT_FOUND (file, or field of an override), INVALID_ARGUMENT
// (syntax with line and column; range; combination).
absl::StatusOr<JobConfig> LoadJobConfig(const std::string& path,
                                        std::span<const std::string> overrides);

// The same for text at hand; `source` names it in errors.
absl::StatusOr<JobConfig> ParseJobConfig(const std::string& text, const std::string& source,
                                         std::span<const std::string> overrides);

// Applies one "path.to.field=value".
absl::Status ApplyOverride(JobConfig& config, const std::string& override_text);

// Writes the default of every field that is not set. `cores`: of this machine, for
// cluster.lanes_per_server.
void FillDefaults(JobConfig& config, uint32_t cores);
void FillDefaults(JobConfig& config);  // with the cores that this process may use

// Identity of a configuration with defaults filled in: equal for two nodes that would compute the
// same job. Leaves out data.resolved_*, cluster.lanes_per_server, compute_threads and pin_threads,
// which may differ between machines.
uint64_t Fingerprint(const JobConfig& config);

// "train.steps is 100 in one and 200 in the other", for the first field in which the fingerprints'
// contents differ; empty if none.
std::string FirstDifference(const JobConfig& one, const JobConfig& other);

// Every field with its comment, default and range: proto/job.proto as it is.
std::string FieldHelp();

}  // namespace tug

#endif  // TUG_PROTO_JOB_CONFIG_H_
