// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_TEXT_FILE_H_
#define TUG_BASE_FILES_TEXT_FILE_H_

// Text files written by users and their editors. Text is UTF-8. A byte order mark at the front of a
// file is not part of its text.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Length of a file's prefix that TextStart examines for its encoding.
inline constexpr size_t kTextFrontBytes = 4096;

// Returns the offset at which the text of a file begins: 0, or the end of a byte order mark.
// `front`: the first kTextFrontBytes bytes of the file, or all of a shorter one. Pure. Errors:
// INVALID_ARGUMENT, naming `path` and the remedy, for UTF-16 and UTF-32, recognised by:
//   a byte order mark;
//   UTF-32 without one: at least two characters, each a code point other than NUL;
//   UTF-16 without one, in Latin letters only: at least half of the characters are below U+0100,
//   and no character's low byte is 0. Other scripts have no zero bytes and are not detected.
absl::StatusOr<size_t> TextStart(std::string_view front, const std::string& path);

// Text of a whole file. Errors: those of ReadWholeFile and TextStart.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t limit_bytes);

// Whether the name of a folder's entry marks it as no text of the user's: hidden (".DS_Store",
// ".x.swp") or an editor's copy ("a~", "a.swp", "#a#").
bool IsHiddenOrEditorFile(std::string_view name);

}  // namespace tug

#endif  // TUG_BASE_FILES_TEXT_FILE_H_
