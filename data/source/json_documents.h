// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_SOURCE_JSON_DOCUMENTS_H_
#define TUG_DATA_SOURCE_JSON_DOCUMENTS_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/source/text_reader.h"

namespace tug {

// Whether a text begins with a line that is a JSON object. `front`: its first bytes; a line that
// they cut counts if it begins like an object.
bool LooksLikeJsonLines(std::string_view front);

// JSON lines (jsonlines.org) as running text: the string "text" of each object, followed by
// `document_end`. Lines of white space and empty documents are skipped. Memory is bounded by
// kMaxDocumentBytes. Errors: INVALID_ARGUMENT, naming file and line.
class JsonDocuments final : public TextReader {
 public:
  static constexpr size_t kMaxDocumentBytes = size_t{64} << 20;

  JsonDocuments(std::string path, std::unique_ptr<TextReader> lines, std::string document_end);

  absl::StatusOr<size_t> Read(std::span<char> out) override;

 private:
  // Makes the next document the unread text; false at the end of the lines.
  absl::StatusOr<bool> NextDocument();
  // The next line, without its end; valid until the next call. False at the end.
  absl::StatusOr<bool> NextLine(std::string_view& line);
  absl::StatusOr<std::string> TextOf(std::string_view line) const;
  absl::Status Bad(const std::string& what) const;

  const std::string path_;
  const std::unique_ptr<TextReader> lines_;
  const std::string document_end_;
  std::string held_;        // bytes read and not returned as a line
  size_t line_begin_ = 0;   // in held_
  bool ended_ = false;      // no more bytes in lines_
  uint64_t number_ = 0;     // lines read
  std::string document_;    // text with its end
  size_t document_at_ = 0;  // first unread byte
};

}  // namespace tug

#endif  // TUG_DATA_SOURCE_JSON_DOCUMENTS_H_
