// SPDX-License-Identifier: Apache-2.0
#include "data/source/json_documents.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

nlohmann::json Parse(std::string_view line) {
  return nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
}

// Without the white space at its beginning.
std::string_view Stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? "" : text.substr(begin);
}

std::string KeysOf(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return absl::StrJoin(keys, ", ");
}

}  // namespace

bool LooksLikeJsonLines(std::string_view front) {
  const std::string_view text = Stripped(front);
  if (!text.starts_with('{')) return false;
  const size_t end = text.find('\n');
  if (end != text.npos || Parse(text).is_object()) return Parse(text.substr(0, end)).is_object();
  // The front ends inside the line: it begins with a key, as {"text": "...
  const std::string_view key = Stripped(text.substr(1));
  const size_t quote = key.starts_with('"') ? key.find('"', 1) : key.npos;
  return quote != key.npos && Stripped(key.substr(quote + 1)).starts_with(':');
}

JsonDocuments::JsonDocuments(std::string path, std::unique_ptr<TextReader> lines,
                             std::string document_end)
    : path_(std::move(path)), lines_(std::move(lines)), document_end_(std::move(document_end)) {}

absl::StatusOr<size_t> JsonDocuments::Read(std::span<char> out) {
  size_t held = 0;
  while (held < out.size()) {
    if (document_at_ == document_.size()) {
      ASSIGN_OR_RETURN(const bool more, NextDocument());
      if (!more) break;
    }
    const size_t size = std::min(out.size() - held, document_.size() - document_at_);
    std::copy_n(document_.data() + document_at_, size, out.data() + held);
    document_at_ += size;
    held += size;
  }
  return held;
}

absl::StatusOr<bool> JsonDocuments::NextDocument() {
  document_.clear();
  document_at_ = 0;
  while (document_.empty()) {
    std::string_view line;
    ASSIGN_OR_RETURN(const bool more, NextLine(line));
    if (!more) return false;
    if (Stripped(line).empty()) continue;
    ASSIGN_OR_RETURN(document_, TextOf(line));
  }
  document_ += document_end_;
  return true;
}

absl::StatusOr<bool> JsonDocuments::NextLine(std::string_view& line) {
  size_t searched = line_begin_;
  while (true) {
    const size_t end = held_.find('\n', searched);
    if (end != held_.npos || (ended_ && line_begin_ < held_.size())) {
      line = std::string_view(held_).substr(line_begin_, end - line_begin_);
      line_begin_ = std::min(end, held_.size() - 1) + 1;
      ++number_;
      return true;
    }
    if (ended_) return false;
    held_.erase(0, line_begin_);
    line_begin_ = 0;
    searched = held_.size();
    if (searched > kMaxDocumentBytes) {
      ++number_;
      return Bad(absl::StrCat("is longer than ", kMaxDocumentBytes >> 20, " MiB"));
    }
    held_.resize(searched + kReadBytes);
    ASSIGN_OR_RETURN(const size_t got,
                     lines_->Read(std::span(held_.data() + searched, kReadBytes)));
    held_.resize(searched + got);
    ended_ = got < kReadBytes;
  }
}

absl::StatusOr<std::string> JsonDocuments::TextOf(std::string_view line) const {
  const nlohmann::json object = Parse(line);
  if (object.is_discarded()) return Bad("is not valid JSON");
  if (!object.is_object()) return Bad("is not a JSON object");
  const auto text = object.find("text");
  if (text == object.end()) {
    return Bad(absl::StrCat("has no field \"text\" (its fields: ", KeysOf(object), ")"));
  }
  if (!text->is_string()) return Bad("has a field \"text\" that is not a string");
  return text->get<std::string>();
}

absl::Status JsonDocuments::Bad(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(
      path_, ": line ", number_, " ", what,
      "; each JSON line needs a string \"text\" (`jq -c '{text: .content}'` renames a field)"));
}

}  // namespace tug
