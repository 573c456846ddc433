// SPDX-License-Identifier: Apache-2.0
#include "launch/restarted_run.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/observe/run_folder.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

// Where to move the folder of an earlier attempt: next to it.
std::string Aside(const std::string& run, uint32_t restarts) {
  return absl::StrCat(run, ".before-restart-", restarts);
}

}  // namespace

absl::Status ResumeAfterRestart(uint32_t restarts, JobArguments& job) {
  const std::string run = job.run_dir;
  std::error_code error;
  if (restarts == 0 || run.empty()) return absl::OkStatus();
  if (!fs::exists(run, error) || fs::is_empty(run, error)) return absl::OkStatus();
  const absl::StatusOr<FoundCheckpoint> newest = FindCheckpoint(run);
  if (newest.ok()) {
    PrintLineToStderr(absl::StrCat("Slurm restarted this job (restart ", restarts,
                                   "): continuing from step ", newest->manifest.version(), " of ",
                                   run));
    job.resume = run;
    job.run_dir.clear();
    job.init_from.clear();  // the first start used it
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(newest.status())) return newest.status();
  ASSIGN_OR_RETURN(const OwnedRunFolder owned, OwnRunFolder(run));  // no coordinator runs in it
  const std::string path = AbsolutePath(run);
  const std::string aside = Aside(path, restarts);
  fs::rename(path, aside, error);
  if (error) return FileError(error.value(), "move aside", path);
  PrintLineToStderr(absl::StrCat("Slurm restarted this job (restart ", restarts,
                                 "): no checkpoint was written yet, so the job starts from the "
                                 "beginning; its old run folder is now ",
                                 aside));
  return absl::OkStatus();
}

}  // namespace tug
