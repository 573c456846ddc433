// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TOKEN_LINES_H_
#define TUG_DATA_TOKEN_LINES_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/source/text_source.h"
#include "data/text/tokenizer.h"
#include "data/token_file.h"

namespace tug {

// Encodes lines into tokens and a table of TokenLine, in bounded memory: the table, which follows
// the tokens in the token file, is written to a temporary file meanwhile. Owned by one thread.
class TokenLines {
 public:
  // `table_path`: temporary file, deleted by the destructor. `labels`: sorted; kLabelledLines only.
  TokenLines(TextForm form, std::span<const std::string> labels, std::string table_path)
      : form_(form), labels_(labels), table_path_(std::move(table_path)) {}
  ~TokenLines();
  TokenLines(const TokenLines&) = delete;
  TokenLines& operator=(const TokenLines&) = delete;

  // Passes the tokens of each line to `take`. Errors: those of ForEachLine and the tokenizer;
  // INVALID_ARGUMENT for a text without lines, an unknown label, or a side without tokens; those of
  // the file system.
  absl::Status Encode(const TextSource& text, const Tokenizer& tokenizer,
                      const std::function<absl::Status(std::span<const int32_t>)>& take);
  // Passes the table to `take` in pieces. Call after Encode.
  absl::Status ForEachPiece(const std::function<absl::Status(std::span<const std::byte>)>& take);

  uint64_t lines() const { return lines_; }
  uint64_t text_bytes() const { return text_bytes_; }

 private:
  const TextForm form_;
  const std::span<const std::string> labels_;
  const std::string table_path_;
  uint64_t lines_ = 0;
  uint64_t text_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_DATA_TOKEN_LINES_H_
