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

// The two sides of the first tab of a line; neither is empty.
struct TextLine {
  std::string_view first;
  std::string_view second;
  uint64_t first_offset_bytes = 0;  // in the file
  uint64_t second_offset_bytes = 0;
};

// Calls `take` for every line of the files in order, in memory bounded by kMaxLineBytes. A carriage
// return at a line's end is dropped; lines with nothing in them are left out. Errors, with file,
// line and remedy: a line without a tab, or with nothing before or behind it, or too long; those of
// `take` and of TextSource::ForEachPiece.
absl::Status ForEachLine(const TextSource& source, TextForm form,
                         const std::function<absl::Status(const TextLine& line)>& take);

// What is encoded of a text: of running text all of it, of lines the texts, sources and targets.
// For tokenizers that learn from it. Borrows `source`.
EncodedText EncodedTextOf(const TextSource& source, TextForm form);

// The distinct labels of a text of labelled lines, in order of bytes. Errors: those of ForEachLine;
// INVALID_ARGUMENT for more than kMaxLabels, and, with file and line, for one that is not UTF-8 or
// longer than kMaxLabelBytes.
absl::StatusOr<std::vector<std::string>> CollectLabels(const TextSource& source);

}  // namespace tug

#endif  // TUG_DATA_LINE_TEXT_H_
