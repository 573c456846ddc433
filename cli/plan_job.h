#ifndef TUG_CLI_PLAN_JOB_H_
#define TUG_CLI_PLAN_JOB_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/plan_options.h"
#include "cli/plan_table.h"

namespace tug {

// A job file as inputs of `tug plan`, and what its own processes will hold.
struct PlanJob {
  PlanInputs inputs;  // resolved
  PlanSection memory;
};

// Workers become GPUs; of `hardware` the options count that say what a job does not: memory, FLOPS
// and links of a machine, days. The text is not read: where the number of symbols comes from it,
// `vocabulary` or model.vocabulary says it. Errors: those of LoadJobConfig; INVALID_ARGUMENT for a
// job without a model, or without that number.
absl::StatusOr<PlanJob> ReadPlanJob(const std::string& job_file,
                                    const std::vector<std::string>& overrides,
                                    const PlanOptions& hardware,
                                    std::optional<uint32_t> vocabulary);

}  // namespace tug

#endif  // TUG_CLI_PLAN_JOB_H_
