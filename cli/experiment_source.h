#ifndef TUG_CLI_EXPERIMENT_SOURCE_H_
#define TUG_CLI_EXPERIMENT_SOURCE_H_

#include "absl/status/statusor.h"
#include "cli/experiment_runner.h"
#include "experiment/experiment_plan.h"

namespace tug {

// Reads the experiment file that the command line names, or the built-in experiment of that name,
// and the job file that it names in turn. Errors: those of the files; an unknown name, with the
// built-in ones and the nearest of them.
absl::StatusOr<ExperimentSource> ReadExperimentSource(const ExperimentFileArguments& arguments);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_SOURCE_H_
