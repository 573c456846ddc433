#ifndef TUG_CLI_TEMPORARY_FOLDER_H_
#define TUG_CLI_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tug {

// A folder of our own below TMPDIR, for as long as it lives.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // `name`: in its own, for people. Errors: as FileError.
  absl::Status Make(const std::string& name) {
    std::error_code error;
    std::string pattern =
        (std::filesystem::temp_directory_path(error) / absl::StrCat("tug-", name, "-XXXXXX"))
            .string();
    if (error || mkdtemp(pattern.data()) == nullptr) return FileError(errno, "make", pattern);
    path_ = pattern;
    return absl::OkStatus();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tug

#endif  // TUG_CLI_TEMPORARY_FOLDER_H_
