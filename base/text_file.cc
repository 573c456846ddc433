#include "base/text_file.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr std::string_view kUtf16Marks[] = {"\xFF\xFE", "\xFE\xFF"};
constexpr std::string_view kUtf32BigEndianMark("\0\0\xFE\xFF", 4);

// Text in Latin letters as UTF-16 without a mark: at least half of its characters are below U+0100,
// so their other byte is zero. UTF-8 text has no zeros.
bool HasZerosOfWideCharacters(std::string_view front) {
  size_t zeros[2] = {};  // at even and odd places
  for (size_t i = 0; i < front.size(); ++i) zeros[i % 2] += front[i] == '\0' ? 1 : 0;
  const size_t half = front.size() / 4;
  return half > 0 && ((zeros[0] >= half && zeros[1] == 0) || (zeros[1] >= half && zeros[0] == 0));
}

bool IsWide(std::string_view front) {
  for (const std::string_view mark : kUtf16Marks) {
    if (front.starts_with(mark)) return true;
  }
  return front.starts_with(kUtf32BigEndianMark) || HasZerosOfWideCharacters(front);
}

}  // namespace

absl::StatusOr<size_t> TextStart(std::string_view front, const std::string& path) {
  if (IsWide(front)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is UTF-16 or UTF-32, and text is UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`",
        ", or save it as UTF-8"));
  }
  return front.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t limit_bytes) {
  ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path, limit_bytes));
  ASSIGN_OR_RETURN(const size_t start,
                   TextStart(std::string_view(text).substr(0, kTextFrontBytes), path));
  text.erase(0, start);
  return text;
}

bool IsHiddenOrEditorFile(std::string_view name) {
  return name.starts_with('.') || name.ends_with('~') || name.ends_with(".swp") ||
         (name.size() > 1 && name.starts_with('#') && name.ends_with('#'));
}

}  // namespace tug
