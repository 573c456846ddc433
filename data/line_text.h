// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_LINE_TEXT_H_
#define TUG_DATA_LINE_TEXT_H_

// Text as lines "label<TAB>text" or "source<TAB>target" (TextForm).

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/source/text_source.h"
#include "data/text/tokenizer.h"
#include "data/token_file.h"

namespace tug {

// Maximum number of distinct labels, equal to the maximum classes of a model.
inline constexpr size_t kMaxLabels = 65536;
inline constexpr size_t kMaxLabelBytes = 256;
inline constexpr size_t kMaxLineBytes = size_t{16} << 20;

// The two sides of a line's tab, without surrounding white space; neither is empty.
struct TextLine {
  std::string_view first;
  std::string_view second;
  uint64_t first_offset_bytes = 0;  // in the file
  uint64_t second_offset_bytes = 0;
};

// Calls `take` for every line of the files in order, in memory bounded by kMaxLineBytes:
//   1. A line ends at a newline or at the end of its file, without carriage returns before that.
//   2. Lines of only white space are skipped.
//   3. A line has exactly one tab; white space around its two sides is dropped.
//   4. The first line of a file is no header ("label<TAB>text"), and no label is in quotes.
// Errors, with file, line and remedy: a line that breaks a rule, has an empty side, is too long, or
// contains a byte not allowed in text (NUL, a carriage return or byte order mark inside); those of
// `take` and of TextSource::ForEachPiece.
absl::Status ForEachLine(const TextSource& source, TextForm form,
                         const std::function<absl::Status(const TextLine& line)>& take);

// Parses one side of a line (a prompt) like ForEachLine; empty if `text` is only white space.
// Errors: INVALID_ARGUMENT, one line with the remedy, for a tab, a newline before the end, or a
// byte not allowed in text.
absl::StatusOr<std::string_view> SideOfLine(std::string_view text);

// The encoded part of a text: all of running text; the texts, sources and targets of lines. For
// tokenizers that are trained on it. Borrows `source`.
EncodedText EncodedTextOf(const TextSource& source, TextForm form);

// Distinct labels of a text of labelled lines, sorted by bytes. Errors: those of ForEachLine;
// INVALID_ARGUMENT for more than kMaxLabels, and, with file and line, for a label that is not UTF-8
// or longer than kMaxLabelBytes.
absl::StatusOr<std::vector<std::string>> CollectLabels(const TextSource& source);

}  // namespace tug

#endif  // TUG_DATA_LINE_TEXT_H_
