#ifndef TUG_BASE_MAPPED_FILE_H_
#define TUG_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace tug {

// A file's bytes, mapped read-only: pages come from disk when touched and may leave memory again.
// For files that nobody shortens while they are mapped (ours are written under another name and
// renamed). Movable, not copyable; reading is thread-safe. Errors: as FileError (base/file.h);
// FAILED_PRECONDITION for a file system that maps no files.
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

#endif  // TUG_BASE_MAPPED_FILE_H_
