// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_TABLES_PLAN_JOB_H_
#define TUG_PLAN_TABLES_PLAN_JOB_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/tables/plan_options.h"
#include "plan/tables/plan_table.h"

namespace tug {

// A job file as inputs of `tug plan`, and the predicted memory of its processes.
struct PlanJob {
  PlanInputs inputs;  // resolved
  PlanSection memory;
};

// Workers become GPUs. `hardware` provides what a job does not: memory, FLOPS and links of a
// machine, days. The text is not read: if the number of symbols depends on it, `vocabulary` or
// model.vocabulary must give it. Errors: those of LoadJobConfig; INVALID_ARGUMENT for a job without
// a model, or without that number.
absl::StatusOr<PlanJob> ReadPlanJob(const std::string& job_file,
                                    const std::vector<std::string>& overrides,
                                    const PlanOptions& hardware,
                                    std::optional<uint32_t> vocabulary);

}  // namespace tug

#endif  // TUG_PLAN_TABLES_PLAN_JOB_H_
