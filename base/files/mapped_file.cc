// SPDX-License-Identifier: Apache-2.0
#include "base/files/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

absl::Status MapError(int error_number, const std::string& path) {
  if (error_number != ENODEV) return FileError(error_number, "map", path);
  return absl::FailedPreconditionError(
      absl::StrCat("cannot map ", path,
                   ": its file system does not support memory-mapped files; put it on a local disk "
                   "(for a worker's token file: --cache-dir)"));
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(path));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return FileError(errno, "read the size of", path);
  if (S_ISDIR(info.st_mode)) return FileError(EISDIR, "read", path);
  MappedFile file;
  file.path_ = path;
  const size_t size_bytes = static_cast<size_t>(info.st_size);
  if (size_bytes == 0) return file;
  // Read-only private pages equal the file's, and FUSE supports private mappings where it refuses
  // shared ones (direct_io).
  void* data = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return MapError(errno, path);
  file.bytes_ = {static_cast<const std::byte*>(data), size_bytes};
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tug
