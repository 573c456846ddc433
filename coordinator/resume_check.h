#ifndef TUG_COORDINATOR_RESUME_CHECK_H_
#define TUG_COORDINATOR_RESUME_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"
#include "proto/manifest.pb.h"

namespace tug {

// Whether `config` (resolved) can go on from a checkpoint: model, seed, virtual workers, batch and
// data must be those it was trained with, and steps must be left. How the work is spread (servers,
// lanes, workers, segments, messages), how long it goes on, the optimizer's settings and how often
// it is evaluated and saved may differ. Errors: FAILED_PRECONDITION, naming `folder`, the first
// field that differs and what to do; OUT_OF_RANGE: no step is left, the job is done. Pure.
absl::Status CheckResume(const Manifest& manifest, const std::string& folder,
                         const JobConfig& config, const BlockTable& blocks);

// Parts of it, for who is about to change something: what can be compared before any data is read
// (not of a replay, whose batch comes from its profile), and what a text has been resolved to.
absl::Status CheckResumedSettings(const Manifest& manifest, const std::string& folder,
                                  const JobConfig& config);
absl::Status CheckResumedText(const Manifest& manifest, const std::string& folder,
                              const JobConfig& config);

}  // namespace tug

#endif  // TUG_COORDINATOR_RESUME_CHECK_H_
