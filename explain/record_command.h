// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPLAIN_RECORD_COMMAND_H_
#define TUG_EXPLAIN_RECORD_COMMAND_H_

#include <string>
#include <vector>

namespace tug {

class JobConfig;

// The shell command that records a trace of a job like that in `run_dir`, whose configuration is
// `config`, with `sets` ("sync.policy=BSP") applied. The new run has just enough steps. `hosts`:
// that the job ran on; for more than one, the user fills in the file of hosts. Pure.
std::string RecordCommand(const std::string& run_dir, const JobConfig& config, size_t hosts,
                          const std::vector<std::string>& sets);

}  // namespace tug

#endif  // TUG_EXPLAIN_RECORD_COMMAND_H_
