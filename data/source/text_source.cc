// SPDX-License-Identifier: Apache-2.0
#include "data/source/text_source.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

// Texts of the job files in deploy/jobs, and the scripts that write them.
constexpr struct {
  const char* file;
  const char* script;
} kWrittenTexts[] = {
    {"bible-kjv.txt", "deploy/bible"},
    {"testament.txt", "deploy/testament"},
    {"words.txt", "deploy/reverse_words"},
};

absl::Status CannotRead(int error_number, const std::string& path) {
  const absl::Status error = FileError(error_number, "read data.path", path);
  const std::string file = std::filesystem::path(path).filename().string();
  for (const auto& text : kWrittenTexts) {
    if (!absl::IsNotFound(error) || file != text.file) continue;
    return absl::NotFoundError(
        absl::StrCat(error.message(), ", or write it with: ", text.script, " ", path));
  }
  return error;
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
  if (::stat(path.c_str(), &info) != 0) return CannotRead(errno, path);
  if (S_ISREG(info.st_mode)) {
    RETURN_IF_ERROR(OpenText(path, rules_).status());
    files_.push_back({path, static_cast<uint64_t>(info.st_size),
                      int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec});
  } else {
    left_out_.push_back(S_ISDIR(info.st_mode) ? name + "/" : name);
  }
  return absl::OkStatus();
}

absl::StatusOr<TextSource> TextSource::Open(const std::string& path, const TextRules& rules) {
  TextSource source(path, rules);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    RETURN_IF_ERROR(source.AddFolder());
  } else {
    RETURN_IF_ERROR(source.Add(""));
  }
  if (source.files_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.path ", path, " contains no regular files except hidden files and ",
                     "editor backups; set it to a text file or a folder of text files"));
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

uint64_t TextSource::estimated_text_bytes() const {
  constexpr uint64_t kUsualCompression = 4;
  uint64_t sum = 0;
  for (const File& file : files_) {
    sum += IsCompressedName(file.path) ? kUsualCompression * file.size_bytes : file.size_bytes;
  }
  return sum;
}

absl::StatusOr<uint64_t> TextSource::MeasureText() const {
  uint64_t sum = 0;
  const auto whole = [](std::string_view text) { return text.size(); };
  RETURN_IF_ERROR(ForEachPiece(whole, [&sum](std::string_view piece, uint64_t) {
    sum += piece.size();
    return absl::OkStatus();
  }));
  if (sum > 0) return sum;
  return absl::InvalidArgumentError(absl::StrCat(
      "data.path ", path_, " has no text; set it to a file or folder with text in it"));
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
                                      size_t piece_bytes) const {
  std::string buffer(piece_bytes, '\0');
  ASSIGN_OR_RETURN(const auto reader, OpenText(file.path, rules_));
  uint64_t offset_bytes = reader->start_bytes();  // of the buffer's first byte
  size_t held = 0;                                // bytes in the buffer
  while (true) {
    ASSIGN_OR_RETURN(const size_t got, reader->Read(std::span(buffer).subspan(held)));
    held += got;
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
