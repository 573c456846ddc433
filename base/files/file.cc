// SPDX-License-Identifier: Apache-2.0
#include "base/files/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/files/file_limit.h"
#include "base/status_macros.h"

namespace tug {

absl::Status FileError(int error_number, const std::string& action, const std::string& path) {
  const std::string what =
      absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error_number), "; ");
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(what, "check the path"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(
          absl::StrCat(what, "change its permissions or choose another path"));
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "free some space there or choose a folder on another disk"));
    case EFBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "raise `ulimit -f`, or choose a folder on another disk"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(what, "raise `ulimit -n`"));
    case EISDIR:
      return absl::InvalidArgumentError(absl::StrCat(what, "name a file, not a folder"));
    default:
      return absl::InternalError(absl::StrCat(what, "check the disk and the path"));
  }
}

namespace {

// `write`: writes some of the bytes and returns their number, or -1 with errno set.
absl::Status WriteInParts(const std::string& path, std::span<const std::byte> bytes,
                          absl::FunctionRef<ssize_t(std::span<const std::byte>)> write) {
  while (!bytes.empty()) {
    const ssize_t written = write(bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileError(written < 0 ? errno : EIO, "write", path);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteAll(int fd, const std::string& path, std::span<const std::byte> bytes) {
  return WriteInParts(path, bytes, [&](std::span<const std::byte> rest) {
    return ::write(fd, rest.data(), rest.size());
  });
}

absl::Status WriteAllAt(int fd, const std::string& path, uint64_t offset_bytes,
                        std::span<const std::byte> bytes) {
  return WriteInParts(path, bytes, [&](std::span<const std::byte> rest) {
    const uint64_t done = bytes.size() - rest.size();
    return ::pwrite(fd, rest.data(), rest.size(), static_cast<off_t>(offset_bytes + done));
  });
}

FileDescriptor OpenFile(const std::string& path, int flags, unsigned mode) {
  FileDescriptor fd;
  OpenWithReserve([&] {
    fd = FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC, mode));
    return !fd.valid() && errno == EMFILE;
  });
  return fd;
}

FileStream OpenStream(const std::string& path) {
  FileStream file;
  OpenWithReserve([&] {
    file.reset(std::fopen(path.c_str(), "ae"));
    return file == nullptr && errno == EMFILE;
  });
  return file;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

absl::Status MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return FileError(errno, "create the folder", path);
}

absl::StatusOr<std::vector<std::string>> NamesInFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  OpenWithReserve([&] {
    names.clear();
    std::filesystem::directory_iterator entry(path, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    return error == std::errc::too_many_files_open;
  });
  if (error) return FileError(error.value(), "list the folder", path);
  return names;
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  OpenWithReserve([&] {
    std::filesystem::remove_all(path, error);
    return error == std::errc::too_many_files_open;
  });
  return error ? FileError(error.value(), "delete", path) : absl::OkStatus();
}

absl::StatusOr<FileDescriptor> OpenForReading(const std::string& path) {
  FileDescriptor fd = OpenFile(path, O_RDONLY);
  if (!fd.valid()) return FileError(errno, "open", path);
  return fd;
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit_bytes) {
  ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(path));
  std::string text;
  char buffer[1 << 14];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) return text;
    if (text.size() + static_cast<uint64_t>(got) > limit_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(path, " is larger than ", limit_bytes,
                                                       " bytes, the limit for this kind of file; "
                                                       "check that it is the right one"));
    }
    text.append(buffer, static_cast<size_t>(got));
  }
}

std::string AbsolutePath(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error).string();
  if (error) return path;  // the current folder no longer exists
  std::string found;       // empty: the root
  for (const absl::string_view name : absl::StrSplit(whole, '/', absl::SkipEmpty())) {
    if (name == ".") continue;
    if (name != "..") {
      absl::StrAppend(&found, "/", name);
      continue;
    }
    if (std::filesystem::is_symlink(found, error)) {
      found = std::filesystem::canonical(found, error).string();
      if (error) return whole;  // a dangling link: opening the path reports it
    }
    found.erase(found.empty() ? 0 : found.rfind('/'));
  }
  return found.empty() ? "/" : found;
}

absl::Status SyncFolder(const std::string& path) {
  const FileDescriptor fd = OpenFile(path, O_RDONLY | O_DIRECTORY);
  if (!fd.valid()) return FileError(errno, "open the folder", path);
  if (::fsync(fd.get()) == 0) return absl::OkStatus();
  const bool cannot = errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS;
  return cannot ? absl::OkStatus() : FileError(errno, "sync the folder", path);
}

}  // namespace tug
