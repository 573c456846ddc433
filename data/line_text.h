#ifndef TUG_DATA_LINE_TEXT_H_
#define TUG_DATA_LINE_TEXT_H_

// A text of lines "label<TAB>text" or "source<TAB>target" (TextForm).

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/text_source.h"
#include "data/token_file.h"
#include "data/tokenizer.h"

namespace tug {

// Distinct labels: as many as a model can have classes.
inline constexpr size_t kMaxLabels = 65536;
inline constexpr size_t kMaxLabelBytes = 256;
inline constexpr size_t kMaxLineBytes = size_t{16} << 20;

// The two sides of a line's tab, without white space at their ends; neither is empty.
struct TextLine {
  std::string_view first;
  std::string_view second;
  uint64_t first_offset_bytes = 0;  // in the file
  uint64_t second_offset_bytes = 0;
};

// Calls `take` for every line of the files in order, in memory bounded by kMaxLineBytes:
//   1. A line ends at a newline, or at the end of its file; a carriage return before that is no
//      part of it.
//   2. A line of white space alone is left out.
//   3. A line has one tab; white space at both ends of its two sides is dropped.
//   4. The first line of a file names no columns ("label<TAB>text"), and no label stands in quotes.
// Errors, with file, line and remedy: a line that breaks a rule, has nothing on a side, is too
// long, or holds a byte that text has not (NUL, a carriage return or a byte order mark inside);
// those of `take` and of TextSource::ForEachPiece.
absl::Status ForEachLine(const TextSource& source, TextForm form,
                         const std::function<absl::Status(const TextLine& line)>& take);

// One side of a line by itself (a prompt), as ForEachLine gives it; empty: white space alone.
// Errors: INVALID_ARGUMENT, one line with the remedy, for a tab, a newline other than the line's
// end, or a byte that text has not.
absl::StatusOr<std::string_view> SideOfLine(std::string_view text);

// What is encoded of a text: of running text all of it, of lines the texts, sources and targets.
// For tokenizers that learn from it. Borrows `source`.
EncodedText EncodedTextOf(const TextSource& source, TextForm form);

// The distinct labels of a text of labelled lines, in order of bytes. Errors: those of ForEachLine;
// INVALID_ARGUMENT for more than kMaxLabels, and, with file and line, for one that is not UTF-8 or
// longer than kMaxLabelBytes.
absl::StatusOr<std::vector<std::string>> CollectLabels(const TextSource& source);

}  // namespace tug

#endif  // TUG_DATA_LINE_TEXT_H_
