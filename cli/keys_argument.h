#ifndef TUG_CLI_KEYS_ARGUMENT_H_
#define TUG_CLI_KEYS_ARGUMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "security/job_keys.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// Where the keys of a job come from.
struct KeysArgument {
  std::string path;

  // --keys FILE
  void AddTo(CLI::App& command);
  // As words of a command; none if it is not given.
  std::vector<std::string> Words() const;
  // Those of --keys; else of a run folder that has some, if one is named; else of kKeysVariable;
  // else none. Errors: as ReadKeyFile.
  absl::StatusOr<JobKeys> Read(const std::string& run_dir = "") const;
};

// Whether a run folder has the keys of a job for which they were made.
bool HasKeys(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_CLI_KEYS_ARGUMENT_H_
