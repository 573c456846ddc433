// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPLAIN_PATH_FILE_H_
#define TUG_EXPLAIN_PATH_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/trace/critical_path.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// Reads a trace.json (coordinator/trace/trace_file.h). Errors: NOT_FOUND (no file),
// INVALID_ARGUMENT (not a trace).
absl::StatusOr<nlohmann::json> ReadTraceJson(const std::string& trace_path);

// Critical paths in a trace; times in ns since its first event. Errors: NOT_FOUND (none),
// INVALID_ARGUMENT (an incomplete one). `trace_path`: for messages.
absl::StatusOr<std::vector<StepPath>> PathsIn(const nlohmann::json& trace,
                                              const std::string& trace_path);

}  // namespace tug

#endif  // TUG_EXPLAIN_PATH_FILE_H_
