// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_FILE_H_
#define TUG_BASE_FILES_FILE_H_

// Basic file operations, with errors that name the file and the remedy. See also
// base/files/file_writer.h (durable writing) and base/files/mapped_file.h (reading in place).

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

// One line: "cannot `action` `path`: reason; remedy". NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED (disk full, quota, file size limit, too many open files), INVALID_ARGUMENT (a
// folder instead of a file) or INTERNAL, depending on errno.
absl::Status FileError(int error_number, const std::string& action, const std::string& path);

// open(2) with O_CLOEXEC; sets errno on failure. A daemon opens its files with OpenFile or
// OpenStream, which may also use the descriptor reserve (base/files/file_limit.h).
FileDescriptor OpenFile(const std::string& path, int flags, unsigned mode = 0644);

// A stream that its owner closes.
struct CloseStream {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileStream = std::unique_ptr<std::FILE, CloseStream>;
// fopen(3) with mode "ae"; null, with errno, on failure. See OpenFile.
FileStream OpenStream(const std::string& path);

// The folder that holds `path`: the text before the last slash, "/" or ".".
std::string FolderOf(const std::string& path);
// Creates a folder, unless it exists; its parent must. Errors: those of FileError.
absl::Status MakeFolder(const std::string& path);

// Names in a folder, without "." and "..". Errors: those of FileError; NOT_FOUND if the folder does
// not exist.
absl::StatusOr<std::vector<std::string>> NamesInFolder(const std::string& path);
// Deletes a file, or a folder with its contents. A missing path is no error. Errors: those of
// FileError.
absl::Status RemoveAll(const std::string& path);

// Opens a file for reading. Errors: those of FileError.
absl::StatusOr<FileDescriptor> OpenForReading(const std::string& path);

// Contents of a file. Errors: those of FileError; RESOURCE_EXHAUSTED if larger than `limit_bytes`.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit_bytes);

// Writes all bytes at the descriptor's position, or at `offset_bytes`. `path`: named in errors.
// Errors: those of FileError.
absl::Status WriteAll(int fd, const std::string& path, std::span<const std::byte> bytes);
absl::Status WriteAllAt(int fd, const std::string& path, uint64_t offset_bytes,
                        std::span<const std::byte> bytes);

// Absolute form of `path`, relative to the current folder, without "." and trailing slashes. ".."
// after a symbolic link resolves to the parent of the link's target, as in the kernel. Other links
// are kept, since their targets may differ between hosts. Missing components count as folders.
// Empty stays empty.
std::string AbsolutePath(const std::string& path);

// Makes created, renamed and deleted entries of a folder durable across a power failure, if the
// file system can: some network and user-space file systems (CIFS, 9p, FUSE) sync files only, which
// is no error.
absl::Status SyncFolder(const std::string& path);

}  // namespace tug

#endif  // TUG_BASE_FILES_FILE_H_
