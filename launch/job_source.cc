// SPDX-License-Identifier: Apache-2.0
#include "launch/job_source.h"

#include <utility>

#include "base/files/file.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "config/job_config.h"
#include "google/protobuf/text_format.h"

namespace tug {
namespace {

// A job file with the settings of a checkpoint's configuration.
std::string TextOf(const JobConfig& config) {
  JobConfig job = IdentityOf(config);
  if (config.has_watch()) *job.mutable_watch() = config.watch();
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  return text;
}

}  // namespace

absl::StatusOr<JobSource> ReadJob(const JobArguments& arguments) {
  if (!arguments.job_file.empty()) {
    ASSIGN_OR_RETURN(std::string text, ReadJobFile(arguments.job_file));
    return JobSource{std::move(text), arguments.job_file};
  }
  if (arguments.resume.empty()) {
    return absl::InvalidArgumentError(
        "no job given: pass a job file, or --resume RUN to continue a run");
  }
  ASSIGN_OR_RETURN(const FoundCheckpoint from, FindCheckpoint(AbsolutePath(arguments.resume)));
  return JobSource{TextOf(from.manifest.config()), from.folder};
}

}  // namespace tug
