// SPDX-License-Identifier: Apache-2.0
#include "data/token_lines.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"
#include "base/status_macros.h"
#include "data/line_text.h"

namespace tug {
namespace {

constexpr size_t kTableWriteLines = size_t{1} << 12;

absl::StatusOr<uint32_t> NumberOf(std::string_view label, std::span<const std::string> labels) {
  const auto found = std::lower_bound(labels.begin(), labels.end(), label);
  if (found != labels.end() && *found == label) {
    return static_cast<uint32_t>(found - labels.begin());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(label), "\" is not one of the ", labels.size(),
                   " labels of the training text: remove the line, or train on this text"));
}

}  // namespace

TokenLines::~TokenLines() { std::remove(table_path_.c_str()); }

absl::Status TokenLines::Encode(const TextSource& text, const Tokenizer& tokenizer,
                                const std::function<absl::Status(std::span<const int32_t>)>& take) {
  ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(table_path_));
  std::vector<TokenLine> table;
  const auto flush = [&] {
    const absl::Status written = writer.Append(std::as_bytes(std::span(table)));
    table.clear();
    return written;
  };
  std::vector<int32_t> tokens;
  uint64_t begin = 0;
  RETURN_IF_ERROR(ForEachLine(text, form_, [&](const TextLine& line) -> absl::Status {
    TokenLine entry{.begin = begin};
    tokens.clear();
    if (form_ == TextForm::kLabelledLines) {
      ASSIGN_OR_RETURN(entry.second, NumberOf(line.first, labels_));
      RETURN_IF_ERROR(tokenizer.Encode(line.second, line.second_offset_bytes, tokens));
      entry.source = static_cast<uint32_t>(tokens.size());
    } else {
      text_bytes_ += line.first.size();
      RETURN_IF_ERROR(tokenizer.Encode(line.first, line.first_offset_bytes, tokens));
      entry.source = static_cast<uint32_t>(tokens.size());
      RETURN_IF_ERROR(tokenizer.Encode(line.second, line.second_offset_bytes, tokens));
      entry.second = static_cast<uint32_t>(tokens.size()) - entry.source;
    }
    if (entry.source == 0 || (form_ == TextForm::kLinePairs && entry.second == 0)) {
      return absl::InvalidArgumentError("one side of its tab has no tokens: remove the line");
    }
    begin += tokens.size();
    text_bytes_ += line.second.size();
    table.push_back(entry);
    ++lines_;
    if (table.size() == kTableWriteLines) RETURN_IF_ERROR(flush());
    return take(tokens);
  }));
  RETURN_IF_ERROR(flush());
  if (lines_ == 0) {
    return absl::InvalidArgumentError(absl::StrCat("data.path ", text.path(), " has no lines"));
  }
  return writer.Finish();
}

absl::Status TokenLines::ForEachPiece(
    const std::function<absl::Status(std::span<const std::byte>)>& take) {
  ASSIGN_OR_RETURN(const MappedFile table, MappedFile::Open(table_path_));
  constexpr size_t kPieceBytes = size_t{1} << 20;
  for (size_t begin = 0; begin < table.bytes().size(); begin += kPieceBytes) {
    RETURN_IF_ERROR(
        take(table.bytes().subspan(begin, std::min(kPieceBytes, table.bytes().size() - begin))));
  }
  return absl::OkStatus();
}

}  // namespace tug
