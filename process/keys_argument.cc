// SPDX-License-Identifier: Apache-2.0
#include "process/keys_argument.h"

#include <cstdlib>
#include <filesystem>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "coordinator/observe/run_folder.h"
#include "security/key_file.h"

namespace tug {
namespace {

std::string PathIn(const std::string& run_dir) {
  return (std::filesystem::path(run_dir) / kKeysFile).string();
}

}  // namespace

void KeysArgument::AddTo(CLI::App& command) {
  command
      .add_option("--keys", path,
                  "Key file of the job (see tug keys), for security.mode TOKEN and CURVE; default: "
                  "the file named by TUG_KEYS in the environment")
      ->type_name("FILE");
}

std::vector<std::string> KeysArgument::Words() const {
  if (path.empty()) return {};
  return {"--keys", path};
}

bool HasKeys(const std::string& run_dir) {
  std::error_code error;
  return !run_dir.empty() && std::filesystem::exists(PathIn(run_dir), error);
}

absl::StatusOr<JobKeys> KeysArgument::Read(const std::string& run_dir) const {
  if (!path.empty()) return ReadKeyFile(path);
  if (HasKeys(run_dir)) return ReadKeyFile(PathIn(run_dir));
  const char* const named = std::getenv(kKeysVariable);
  if (named == nullptr || *named == '\0') return JobKeys();
  absl::StatusOr<JobKeys> keys = ReadKeyFile(named);
  if (keys.ok()) return keys;
  return absl::Status(keys.status().code(),
                      absl::StrCat("key file named by ", kKeysVariable, ": ",
                                   keys.status().message(), "; or unset ", kKeysVariable));
}

}  // namespace tug
