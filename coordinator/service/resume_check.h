// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_RESUME_CHECK_H_
#define TUG_COORDINATOR_SERVICE_RESUME_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"
#include "proto/manifest.pb.h"

namespace tug {

// Checks that `config` (resolved) can resume from a checkpoint: model, seed, virtual workers, batch
// and data must be those it was trained with, and steps must remain. Distribution (servers, lanes,
// workers, segments, messages), length, optimizer settings, and evaluation and checkpoint intervals
// may differ. Errors: FAILED_PRECONDITION, naming `folder`, the first field that differs and the
// remedy; OUT_OF_RANGE: no step remains, the job is done. Pure.
absl::Status CheckResume(const Manifest& manifest, const std::string& folder,
                         const JobConfig& config, const BlockTable& blocks);

// Parts of CheckResume, for callers that have not changed anything so far: settings that can be
// compared before the data is read (not for a replay, whose batch comes from its profile), and the
// resolved text.
absl::Status CheckResumedSettings(const Manifest& manifest, const std::string& folder,
                                  const JobConfig& config);
absl::Status CheckResumedText(const Manifest& manifest, const std::string& folder,
                              const JobConfig& config);

// User-facing texts of the settings in which `config` (resolved) differs from the one the
// checkpoint was made with: "optimizer.learning_rate 0.001 -> 0.002", "train.steps 300 -> 600"; the
// job's length is last; usually none. Leaves out what each start or machine determines. Pure.
std::vector<std::string> ChangedSettings(const Manifest& manifest, const JobConfig& config);

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_RESUME_CHECK_H_
