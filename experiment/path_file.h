#ifndef TUG_EXPERIMENT_PATH_FILE_H_
#define TUG_EXPERIMENT_PATH_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/critical_path.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// A trace.json (coordinator/trace_file.h) as a whole. Errors: NOT_FOUND (no file, with the option
// that makes one), INVALID_ARGUMENT (no trace).
absl::StatusOr<nlohmann::json> ReadTraceJson(const std::string& trace_path);

// The critical paths that are in one; times in ns since the first event. Errors: INVALID_ARGUMENT:
// none are, or not whole. `trace_path` is for them.
absl::StatusOr<std::vector<StepPath>> PathsIn(const nlohmann::json& trace,
                                              const std::string& trace_path);

}  // namespace tug

#endif  // TUG_EXPERIMENT_PATH_FILE_H_
