#ifndef TUG_CLI_BUILT_IN_EXPERIMENTS_H_
#define TUG_CLI_BUILT_IN_EXPERIMENTS_H_

// The experiment files of deploy/experiments, which come with tug. Pure, thread-safe.

#include <optional>
#include <string>
#include <vector>

namespace tug {

// Of a name without ".textproto". None: there is no such file.
std::optional<std::string> BuiltInExperiment(const std::string& name);
std::vector<std::string> BuiltInExperimentNames();

}  // namespace tug

#endif  // TUG_CLI_BUILT_IN_EXPERIMENTS_H_
