// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_SOURCE_H_
#define TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_SOURCE_H_

#include "absl/status/statusor.h"
#include "lab/experiment/plan/experiment_plan.h"
#include "lab/experiment/run/experiment_runner.h"

namespace tug {

// Reads the experiment file that the command line names, or the built-in experiment of that name,
// and the job file that it names in turn. Errors: those of the files; for an unknown name, with the
// built-in names and the nearest of them.
absl::StatusOr<ExperimentSource> ReadExperimentSource(const ExperimentFileArguments& arguments);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_SOURCE_H_
