// SPDX-License-Identifier: Apache-2.0
#include "data/text/text_source.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

// Reads until the buffer is full or the file ends. `held`: number of bytes in the buffer;
// increased.
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

// Seeks to the beginning of the file's text and returns that offset.
absl::StatusOr<uint64_t> SeekToText(const FileDescriptor& fd, const std::string& path) {
  std::string front(kTextFrontBytes, '\0');
  size_t held = 0;
  RETURN_IF_ERROR(Fill(fd, path, front, held));
  ASSIGN_OR_RETURN(const size_t start, TextStart(std::string_view(front).substr(0, held), path));
  if (::lseek(fd.get(), static_cast<off_t>(start), SEEK_SET) < 0) {
    return FileError(errno, "read", path);
  }
  return start;
}

}  // namespace

absl::Status TextSource::AddFolder() {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entries(path_, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    names.push_back(entries->path().filename().string());
  }
  if (error) return FileError(error.value(), "read the folder data.path", path_);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (IsHiddenOrEditorFile(name)) {
      left_out_.push_back(name);
    } else {
      RETURN_IF_ERROR(Add(name));
    }
  }
  return absl::OkStatus();
}

absl::Status TextSource::Add(const std::string& name) {
  const std::string path = name.empty() ? path_ : (std::filesystem::path(path_) / name).string();
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return FileError(errno, "read data.path", path);
  if (S_ISREG(info.st_mode)) {
    files_.push_back({path, static_cast<uint64_t>(info.st_size),
                      int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec});
  } else {
    left_out_.push_back(S_ISDIR(info.st_mode) ? name + "/" : name);
  }
  return absl::OkStatus();
}

absl::StatusOr<TextSource> TextSource::Open(const std::string& path) {
  TextSource source(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    RETURN_IF_ERROR(source.AddFolder());
  } else {
    RETURN_IF_ERROR(source.Add(""));
  }
  if (source.files_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.path ", path, " holds no regular file but hidden ones and copies of ",
                     "editors; set it to a text file or a folder of text files"));
  }
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
  // File offset of the buffer's first byte.
  ASSIGN_OR_RETURN(uint64_t offset_bytes, SeekToText(fd, file.path));
  size_t held = 0;  // bytes in the buffer
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
