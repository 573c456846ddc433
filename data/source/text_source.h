// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_SOURCE_TEXT_SOURCE_H_
#define TUG_DATA_SOURCE_TEXT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/source/text_reader.h"

namespace tug {

// The training text: one file, or the regular files of a folder in name order, read as one text
// piece by piece in bounded memory (data/source/text_reader.h: compressed files, JSON lines). In a
// folder, subfolders, hidden files and editors' copies are skipped (IsHiddenOrEditorFile).
// Immutable; reading is thread-safe.
class TextSource {
 public:
  struct File {
    std::string path;
    uint64_t size_bytes;  // on disk
    int64_t modified_ns;  // since 1970
  };

  // Checks the first bytes of each file. Errors: NOT_FOUND; INVALID_ARGUMENT for a folder without
  // files or without text, naming `path` as data.path; those of OpenText.
  static absl::StatusOr<TextSource> Open(const std::string& path, const TextRules& rules = {});

  const std::string& path() const { return path_; }
  const std::vector<File>& files() const { return files_; }
  // Names of a folder's skipped entries, in order; folder names end with a slash.
  const std::vector<std::string>& left_out() const { return left_out_; }
  const TextRules& rules() const { return rules_; }
  uint64_t size_bytes() const;  // on disk
  // Size of the text, without reading it: a compressed file counts four times.
  uint64_t estimated_text_bytes() const;
  // Size of the text. Reads all of it, and so finds what a job would refuse. Errors: those of
  // OpenText; INVALID_ARGUMENT for no text at all.
  absl::StatusOr<uint64_t> MeasureText() const;

  // XXH3 of real path, names, sizes and modification times: changes when any file is modified.
  uint64_t Key() const;

  static constexpr size_t kPieceBytes = size_t{1} << 20;

  // Length of a prefix of `text` that can be processed independently; 0 if that requires more text.
  using Cut = std::function<size_t(std::string_view text)>;
  using Take = std::function<absl::Status(std::string_view piece, uint64_t offset_bytes)>;

  // Calls `take` with each piece in order and its offset in the file. A piece is the prefix that
  // `cut` selects from the next `piece_bytes`, or from more bytes if it returns 0, or the rest of
  // the file. A byte order mark at the front of a file is skipped; the first piece then has offset
  // 3. Offsets of compressed files count decompressed bytes; those of JSON lines, the documents'.
  // Errors: those of `take`, prefixed with the file's name; those of OpenText. REQUIRES: `cut`
  // returns a length once the text is long enough; memory is bounded by that length.
  absl::Status ForEachPiece(const Cut& cut, const Take& take,
                            size_t piece_bytes = kPieceBytes) const;
  // The same for one of files().
  absl::Status ForEachPiece(const File& file, const Cut& cut, const Take& take,
                            size_t piece_bytes = kPieceBytes) const;

 private:
  TextSource(std::string path, TextRules rules)
      : path_(std::move(path)), rules_(std::move(rules)) {}

  absl::Status AddFolder();
  // `name`: entry of the folder; empty for path() itself.
  absl::Status Add(const std::string& name);

  std::string path_;
  TextRules rules_;
  std::vector<File> files_;
  std::vector<std::string> left_out_;
};

}  // namespace tug

#endif  // TUG_DATA_SOURCE_TEXT_SOURCE_H_
