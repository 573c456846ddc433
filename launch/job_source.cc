// SPDX-License-Identifier: Apache-2.0
#include "launch/job_source.h"

#include <string>
#include <utility>
#include <vector>

#include "base/files/file.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "config/job_config.h"
#include "google/protobuf/text_format.h"
#include "huggingface/weights_source.h"

namespace tug {
namespace {

std::string TextOf(const JobConfig& job) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  return text;
}

// A job with the settings of a checkpoint's configuration.
JobConfig ContinuedJob(const JobConfig& config) {
  JobConfig job = IdentityOf(config);
  if (config.has_watch()) *job.mutable_watch() = config.watch();
  return job;
}

// Adds the shape of the weights that the job begins with. A mistake in the job is reported where
// its defaults are filled in.
JobSource WithShapeOfWeights(JobSource source, const JobArguments& arguments) {
  const auto given = ParseJobFields(source.text, source.name, arguments.Overrides());
  if (!given.ok() || given->train().init_from().empty() || given->model().external()) return source;
  const auto weights = WeightsSource::Open(AbsolutePath(given->train().init_from()));
  if (!weights.ok()) return source;
  const std::vector<std::string> shape = weights->ShapeOverrides(*given);
  if (shape.empty()) return source;
  const auto job = ParseJobFields(source.text, source.name, shape);
  if (job.ok()) source.text = TextOf(*job);
  return source;
}

}  // namespace

absl::StatusOr<JobSource> ReadJob(const JobArguments& arguments) {
  if (!arguments.job_file.empty()) {
    ASSIGN_OR_RETURN(std::string text, ReadJobFile(arguments.job_file));
    return WithShapeOfWeights({std::move(text), arguments.job_file}, arguments);
  }
  if (arguments.resume.empty()) {
    return absl::InvalidArgumentError(
        "no job given: pass a job file, or --resume RUN to continue a run");
  }
  ASSIGN_OR_RETURN(const FoundCheckpoint from, FindCheckpoint(AbsolutePath(arguments.resume)));
  return JobSource{TextOf(ContinuedJob(from.manifest.config())), from.folder};
}

}  // namespace tug
