// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_KEYS_ARGUMENT_H_
#define TUG_PROCESS_KEYS_ARGUMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "security/job_keys.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// Source of a job's keys.
struct KeysArgument {
  std::string path;

  // --keys FILE
  void AddTo(CLI::App& command);
  // As command-line words; empty if --keys is not given.
  std::vector<std::string> Words() const;
  // Keys from --keys; else from the run folder, if given and it has keys; else from kKeysVariable;
  // else none. Errors: as ReadKeyFile.
  absl::StatusOr<JobKeys> Read(const std::string& run_dir = "") const;
};

// Whether a run folder contains keys that were made for its job.
bool HasKeys(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_PROCESS_KEYS_ARGUMENT_H_
