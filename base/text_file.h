#ifndef TUG_BASE_TEXT_FILE_H_
#define TUG_BASE_TEXT_FILE_H_

// Files of text that people and their editors write. Text is UTF-8. A byte order mark at the front
// of a file belongs to the file, not to its text.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// How much of a file's beginning tells its encoding.
inline constexpr size_t kTextFrontBytes = 4096;

// Returns the offset at which the text of a file begins: 0, or the end of a byte order mark.
// `front`: the first kTextFrontBytes bytes of the file, or all of a shorter one. Pure. Errors:
// INVALID_ARGUMENT, naming `path` and the remedy, for UTF-16 and UTF-32, which are told by:
//   a mark;
//   UTF-32 without one: every character is a code point but NUL, and there are two at least;
//   UTF-16 without one, in Latin letters only: at least half of the characters are below U+0100,
//   and no character's low byte is 0. Other scripts have no zeros to tell them by, and pass.
absl::StatusOr<size_t> TextStart(std::string_view front, const std::string& path);

// The text of a whole file. Errors: those of ReadWholeFile and TextStart.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t limit_bytes);

// Whether a folder's entry of this name is no text of the user's: hidden (".DS_Store", ".x.swp"),
// or an editor's copy ("a~", "a.swp", "#a#").
bool IsHiddenOrEditorFile(std::string_view name);

}  // namespace tug

#endif  // TUG_BASE_TEXT_FILE_H_
