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
#include "data/utf8.h"

namespace tug {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

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

absl::Status ReadPieces(const TextSource::File& file, std::string& buffer,
                        const TextSource::Take& take) {
  ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(file.path));
  buffer.resize(kPieceBytes);
  uint64_t offset_bytes = 0;  // of the buffer's first byte in the file
  size_t held = 0;            // bytes of a code point whose end has not been read
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data() + held, buffer.size() - held);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", file.path);
    const std::string_view have(buffer.data(), held + static_cast<size_t>(got));
    const std::string_view piece = got == 0 ? have : have.substr(0, WholeCodePoints(have));
    if (!piece.empty()) {
      const absl::Status taken = take(piece, offset_bytes);
      if (!taken.ok()) {
        return absl::Status(taken.code(),
                            absl::StrCat(file.path, ": ", std::string(taken.message())));
      }
    }
    if (got == 0) return absl::OkStatus();
    held = have.size() - piece.size();
    offset_bytes += piece.size();
    std::copy(have.end() - held, have.end(), buffer.begin());
  }
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

absl::Status TextSource::ForEachPiece(const File& file, const Take& take) {
  std::string buffer;
  return ReadPieces(file, buffer, take);
}

absl::Status TextSource::ForEachPiece(const Take& take) const {
  std::string buffer;
  for (const File& file : files_) RETURN_IF_ERROR(ReadPieces(file, buffer, take));
  return absl::OkStatus();
}

}  // namespace tug
