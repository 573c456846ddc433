#ifndef TUG_BASE_FILE_H_
#define TUG_BASE_FILE_H_

// The few file operations that others build on, with errors that name the file and the remedy. See
// also base/file_writer.h (durable writing) and base/mapped_file.h (reading in place).

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

// One line: "cannot `action` `path`: reason; remedy". NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED (disk full, quota, file size limit, too many open files) or INTERNAL, by the
// value of errno.
absl::Status FileError(int error_number, const std::string& action, const std::string& path);

// As open(2), with O_CLOEXEC; errno says why it failed. A daemon opens its files here or by
// OpenStream, which also use the reserve of descriptors (base/file_limit.h).
FileDescriptor OpenFile(const std::string& path, int flags, unsigned mode = 0644);
// As fopen(3) with "ae".
std::FILE* OpenStream(const std::string& path);

// The names in a folder, without "." and "..". Errors: as FileError; NOT_FOUND if there is no such
// folder.
absl::StatusOr<std::vector<std::string>> NamesInFolder(const std::string& path);
// Deletes a file, or a folder and all its contents. A path that does not exist is no error. Errors:
// as FileError.
absl::Status RemoveAll(const std::string& path);

// Opens for reading. Errors: as FileError.
absl::StatusOr<FileDescriptor> OpenForReading(const std::string& path);

// The whole file. Errors: as FileError; RESOURCE_EXHAUSTED if it is larger than `limit_bytes`.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit_bytes);

// `path` from the root on, as the kernel finds it from the current folder: ".." behind a link leads
// to the parent of where the link leads. Other links stay, since hosts may have them for different
// places. Without "." and slashes at the end; what is not there counts as a folder. Empty stays
// empty.
std::string AbsolutePath(const std::string& path);

// Makes created, renamed and deleted entries of a folder survive a power cut, where the file system
// can: some that are mounted from elsewhere (CIFS, 9p, FUSE) sync files only, which is no error.
absl::Status SyncFolder(const std::string& path);

}  // namespace tug

#endif  // TUG_BASE_FILE_H_
