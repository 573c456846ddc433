// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_TEMPORARY_FOLDER_H_
#define TUG_PROCESS_TEMPORARY_FOLDER_H_

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"

namespace tug {

// Temporary folder below TMPDIR, deleted with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // `name`: part of the folder's name. Errors: as FileError.
  absl::Status Make(const std::string& name) {
    std::error_code error;
    std::string pattern =
        (std::filesystem::temp_directory_path(error) / absl::StrCat("tug-", name, "-XXXXXX"))
            .string();
    if (error || mkdtemp(pattern.data()) == nullptr) return FileError(errno, "make", pattern);
    path_ = pattern;
    return absl::OkStatus();
  }
  // Recreates the folder if it was deleted, for example by a cleanup of TMPDIR. Errors: as
  // FileError; PERMISSION_DENIED if that name exists and is not our folder.
  absl::Status MakeAgain() const {
    if (mkdir(path_.c_str(), 0700) == 0) return absl::OkStatus();
    if (errno != EEXIST) return FileError(errno, "make", path_);
    struct stat there {};
    if (lstat(path_.c_str(), &there) != 0) return FileError(errno, "stat", path_);
    if (S_ISDIR(there.st_mode) && there.st_uid == geteuid()) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat(path_,
                     " was deleted and replaced, by a file or by another user's folder: set TMPDIR "
                     "to a folder of your own"));
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tug

#endif  // TUG_PROCESS_TEMPORARY_FOLDER_H_
