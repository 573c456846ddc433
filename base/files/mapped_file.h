// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_MAPPED_FILE_H_
#define TUG_BASE_FILES_MAPPED_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace tug {

// A file mapped read-only: pages are read from disk when touched and may be evicted again. The file
// must not be truncated while it is mapped (this program writes files under another name and
// renames them). Movable, not copyable; reading is thread-safe. Errors: those of FileError
// (base/files/file.h); FAILED_PRECONDITION if the file system does not support mapping.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace tug

#endif  // TUG_BASE_FILES_MAPPED_FILE_H_
