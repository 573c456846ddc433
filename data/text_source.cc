#include "data/text_source.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

// Adds `path` if it is a regular file.
absl::Status AddIfRegular(const std::string& path, std::vector<TextSource::File>& files) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return FileError(errno, "read data.path", path);
  if (S_ISREG(info.st_mode)) {
    files.push_back({path, static_cast<uint64_t>(info.st_size),
                     int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec});
  }
  return absl::OkStatus();
}

absl::Status AddFolder(const std::string& path, std::vector<TextSource::File>& files) {
  std::error_code error;
  std::vector<std::string> paths;
  std::filesystem::directory_iterator entries(path, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    paths.push_back(entries->path().string());
  }
  if (error) return FileError(error.value(), "read the folder data.path", path);
  std::sort(paths.begin(), paths.end());
  for (const std::string& entry : paths) RETURN_IF_ERROR(AddIfRegular(entry, files));
  return absl::OkStatus();
}

// Reads until the buffer is full or the file ends; adds to `held`, the bytes that are in it.
absl::Status Fill(const FileDescriptor& fd, const std::string& path, std::string& buffer,
                  size_t& held) {
  while (held < buffer.size()) {
    const ssize_t got = ::read(fd.get(), buffer.data() + held, buffer.size() - held);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) break;
    held += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TextSource> TextSource::Open(const std::string& path) {
  std::vector<File> files;
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return FileError(errno, "read data.path", path);
  RETURN_IF_ERROR(S_ISDIR(info.st_mode) ? AddFolder(path, files) : AddIfRegular(path, files));
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.path ", path,
                     " holds no regular file; set it to a text file or a folder of "
                     "text files"));
  }
  TextSource source(path, std::move(files));
  if (source.size_bytes() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.path ", path, " is empty; set it to a file or folder with text in it"));
  }
  return source;
}

uint64_t TextSource::size_bytes() const {
  uint64_t sum = 0;
  for (const File& file : files_) sum += file.size_bytes;
  return sum;
}

uint64_t TextSource::Key() const {
  std::error_code ignored;
  std::string key = std::filesystem::canonical(path_, ignored).string();
  for (const File& file : files_) {
    absl::StrAppend(&key, "\n", std::filesystem::path(file.path).filename().string(), "\n",
                    file.size_bytes, " ", file.modified_ns);
  }
  return XXH3_64bits(key.data(), key.size());
}

absl::Status TextSource::ForEachPiece(const File& file, const Cut& cut, const Take& take,
                                      size_t piece_bytes) {
  std::string buffer(piece_bytes, '\0');
  ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(file.path));
  uint64_t offset_bytes = 0;  // of the buffer's first byte in the file
  size_t held = 0;            // bytes in the buffer
  while (true) {
    RETURN_IF_ERROR(Fill(fd, file.path, buffer, held));
    const std::string_view have(buffer.data(), held);
    const bool ended = held < buffer.size();
    const std::string_view piece = ended ? have : have.substr(0, cut(have));
    if (piece.empty() && !ended) {
      buffer.resize(2 * buffer.size());
      continue;
    }
    if (!piece.empty()) {
      const absl::Status taken = take(piece, offset_bytes);
      if (!taken.ok()) {
        return absl::Status(taken.code(),
                            absl::StrCat(file.path, ": ", std::string(taken.message())));
      }
    }
    if (ended) return absl::OkStatus();
    offset_bytes += piece.size();
    held -= piece.size();
    std::copy_n(have.begin() + piece.size(), held, buffer.begin());
  }
}

absl::Status TextSource::ForEachPiece(const Cut& cut, const Take& take, size_t piece_bytes) const {
  for (const File& file : files_) RETURN_IF_ERROR(ForEachPiece(file, cut, take, piece_bytes));
  return absl::OkStatus();
}

}  // namespace tug
