#ifndef TUG_DATA_TEXT_SOURCE_H_
#define TUG_DATA_TEXT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

// The text to train on: one file, or the regular files of a folder in name order, read as one text
// piece by piece in bounded memory. Of a folder, subfolders, hidden files and copies of editors are
// left out (IsHiddenOrEditorFile). Immutable; reading is thread-safe.
class TextSource {
 public:
  struct File {
    std::string path;
    uint64_t size_bytes;
    int64_t modified_ns;  // since 1970
  };

  // Errors: NOT_FOUND; INVALID_ARGUMENT for a folder without files or without text. All name `path`
  // as data.path.
  static absl::StatusOr<TextSource> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<File>& files() const { return files_; }
  // Names of a folder's entries that are left out, in order; those of folders end with a slash.
  const std::vector<std::string>& left_out() const { return left_out_; }
  uint64_t size_bytes() const;

  // XXH3 of real path, names, sizes and modification times: differs once any file was touched.
  uint64_t Key() const;

  static constexpr size_t kPieceBytes = size_t{1} << 20;

  // How much of some text may be taken by itself: a length, or 0 if that cannot be said without
  // more of the text.
  using Cut = std::function<size_t(std::string_view text)>;
  using Take = std::function<absl::Status(std::string_view piece, uint64_t offset_bytes)>;

  // Calls `take` with each piece in order and the offset of the piece in its file. A piece is what
  // `cut` says of the next `piece_bytes`, of more of them where it says 0, or what is left of the
  // file. A byte order mark at the front of a file is not read: the first piece has offset 3 then.
  // Errors of `take` come back with the file's name in front; FileError; INVALID_ARGUMENT for a
  // file in UTF-16 or UTF-32. REQUIRES: cut gives a length once the text is long enough; memory is
  // bounded by that length.
  absl::Status ForEachPiece(const Cut& cut, const Take& take,
                            size_t piece_bytes = kPieceBytes) const;
  // The same of one of files().
  static absl::Status ForEachPiece(const File& file, const Cut& cut, const Take& take,
                                   size_t piece_bytes = kPieceBytes);

 private:
  explicit TextSource(std::string path) : path_(std::move(path)) {}

  absl::Status AddFolder();
  // `name`: of the entry of a folder; empty for path() itself.
  absl::Status Add(const std::string& name);

  std::string path_;
  std::vector<File> files_;
  std::vector<std::string> left_out_;
};

}  // namespace tug

#endif  // TUG_DATA_TEXT_SOURCE_H_
