// SPDX-License-Identifier: Apache-2.0
#include "launch/job_source.h"

#include <utility>

#include "base/files/file.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "config/field_path.h"
#include "google/protobuf/text_format.h"

namespace tug {
namespace {

// Fields of a checkpoint's configuration that a coordinator fills in, that depend on the machine,
// or that belong to one start of the job.
constexpr const char* kNotKept[] = {
    "cluster.lanes_per_server",
    "cluster.compute_threads",
    "cluster.pin_threads",
    "data.resolved_alphabet",
    "data.resolved_symbols",
    "data.resolved_fingerprint",
    "data.resolved_tokenizer",
    "data.resolved_labels",
    "replay.resolved_profile",
    "trace",
    "security",
};

absl::StatusOr<std::string> TextOf(JobConfig config) {
  for (const char* path : kNotKept) {
    ASSIGN_OR_RETURN(const FieldRef field, FindField(config, path));
    if (!field.IsPresent()) continue;
    auto* const parent = const_cast<google::protobuf::Message*>(field.message);  // in our copy
    parent->GetReflection()->ClearField(parent, field.field);
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
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
  ASSIGN_OR_RETURN(std::string text, TextOf(from.manifest.config()));
  return JobSource{std::move(text), from.folder};
}

}  // namespace tug
