// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/run_folder.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/file_lock.h"
#include "base/files/replace_file.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "config/job_config.h"
#include "config/text_proto.h"
#include "coordinator/membership/next_lines.h"
#include "coordinator/utf8_check.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr char kRunFolder[] = "the run folder";

// Ignores the lock and the token files, which a job that has not begun yet may leave.
bool HoldsARun(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename() == kLockFile) continue;
    if (entry.path().filename() != "data") return true;
    for (const fs::directory_entry& file : fs::directory_iterator(entry.path(), error)) {
      if (file.path().filename().string().rfind("tokens.bin", 0) != 0) return true;
    }
    if (error) return true;
  }
  return static_cast<bool>(error);
}

// `wanted`: the path as given by the user.
absl::Status CheckHoldsNoRun(const std::string& path, const std::string& wanted) {
  std::error_code error;
  if (!fs::exists(path, error) || !HoldsARun(path)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "the run folder ", wanted,
      " is not empty: pass another folder with --run-dir, or continue its run with --resume ",
      wanted));
}

struct NewFolder {
  std::string path;
  bool made = false;  // else it existed
};

absl::StatusOr<NewFolder> UseNamedFolder(const std::string& wanted) {
  NewFolder folder{.path = AbsolutePath(wanted)};
  RETURN_IF_ERROR(CheckUtf8(kRunFolder, folder.path));
  RETURN_IF_ERROR(CheckHoldsNoRun(folder.path, wanted));
  std::error_code error;
  folder.made = fs::create_directories(folder.path, error);
  if (error) return FileError(error.value(), "create the run folder", folder.path);
  return folder;
}

absl::StatusOr<NewFolder> MakeNumberedFolder(const std::string& name) {
  std::error_code error;
  const std::string runs = AbsolutePath("runs");
  RETURN_IF_ERROR(CheckUtf8(kRunFolder, absl::StrCat(runs, "/", name)));
  fs::create_directories(runs, error);
  if (error) return FileError(error.value(), "create the folder", runs);
  for (int n = 1;; ++n) {
    const std::string path = absl::StrCat(runs, "/", name, "-", n);
    // create_directory returns false if it exists: two jobs that start together get two folders.
    if (fs::create_directory(path, error)) return NewFolder{.path = path, .made = true};
    if (error) return FileError(error.value(), "create the run folder", path);
  }
}

absl::StatusOr<NewFolder> MakeRunFolder(const std::string& wanted, const std::string& name) {
  return wanted.empty() ? MakeNumberedFolder(name) : UseNamedFolder(wanted);
}

}  // namespace

absl::StatusOr<std::string> CreateRunFolder(const std::string& wanted, const std::string& name) {
  ASSIGN_OR_RETURN(const NewFolder folder, MakeRunFolder(wanted, name));
  return folder.path;
}

absl::StatusOr<OwnedRunFolder> OwnRunFolder(const std::string& path) {
  const std::string lock = absl::StrCat(path, "/", kLockFile);
  ASSIGN_OR_RETURN(FileDescriptor fd, TryFileLock(lock));
  if (fd.valid()) return OwnedRunFolder{.path = path, .lock = std::move(fd)};
  return absl::FailedPreconditionError(absl::StrCat("another coordinator is running in ", path,
                                                    ": see tug status ", path,
                                                    ", or stop it with tug stop ", path));
}

absl::StatusOr<OwnedRunFolder> CreateAndOwnRunFolder(const std::string& wanted,
                                                     const std::string& name) {
  ASSIGN_OR_RETURN(const NewFolder folder, MakeRunFolder(wanted, name));
  ASSIGN_OR_RETURN(OwnedRunFolder owned, OwnRunFolder(folder.path));
  // Another job may have begun and ended there before this process held the lock.
  if (!wanted.empty()) RETURN_IF_ERROR(CheckHoldsNoRun(folder.path, wanted));
  owned.made = folder.made;
  return owned;
}

absl::Status WriteCoordinatorAddress(const std::string& run_dir, const CoordinatorAddress& at) {
  return WriteFile(absl::StrCat(run_dir, "/", kCoordinatorFile),
                   absl::StrCat(at.address, " ", getpid(), " ", at.job, "\n"));
}

absl::StatusOr<CoordinatorAddress> ReadCoordinatorAddress(const std::string& run_dir) {
  std::ifstream file(absl::StrCat(run_dir, "/", kCoordinatorFile));
  CoordinatorAddress at;
  pid_t pid = 0;
  if (file >> at.address >> pid >> at.job) return at;
  std::error_code error;
  if (fs::exists(absl::StrCat(run_dir, "/", kConfigFile), error)) {
    return absl::NotFoundError(absl::StrCat("no coordinator runs in ", run_dir,
                                            ": the job has ended; ", HowToContinue(run_dir)));
  }
  return absl::NotFoundError(absl::StrCat(
      run_dir, " is not a run folder: name one, e.g. runs/job-1, or pass --coordinator HOST:PORT"));
}

absl::StatusOr<JobConfig> ReadRunConfig(const std::string& run_dir) {
  const std::string path = absl::StrCat(run_dir, "/", kConfigFile);
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxJobTextBytes));
  JobConfig config;
  RETURN_IF_ERROR(ParseTextProto(text, path, config));
  return config;
}

std::string HowToContinue(const std::string& run_dir) {
  if (absl::IsNotFound(FindCheckpoint(run_dir).status())) {
    return "it has no checkpoint: start the job again";
  }
  const absl::StatusOr<JobConfig> job = LoadJobConfig(absl::StrCat(run_dir, "/", kConfigFile), {});
  return absl::StrCat("continue it with: ",
                      ResumeCommand(job.value_or(JobConfig()), run_dir, ReadContinueWith(run_dir)));
}

absl::Status WriteContinueWith(const std::string& run_dir, const std::string& command) {
  const std::string path = absl::StrCat(run_dir, "/", kContinueWithFile);
  if (!command.empty()) return WriteFile(path, absl::StrCat(command, "\n"));
  std::error_code ignored;
  fs::remove(path, ignored);
  return absl::OkStatus();
}

std::string ReadContinueWith(const std::string& run_dir) {
  std::ifstream file(absl::StrCat(run_dir, "/", kContinueWithFile));
  std::string command;
  std::getline(file, command);
  return command;
}

void RemoveCoordinatorAddress(const std::string& run_dir) {
  std::error_code ignored;
  fs::remove(absl::StrCat(run_dir, "/", kCoordinatorFile), ignored);
}

void RemoveKeys(const std::string& run_dir) {
  std::error_code ignored;
  fs::remove(absl::StrCat(run_dir, "/", kKeysFile), ignored);
}

}  // namespace tug
