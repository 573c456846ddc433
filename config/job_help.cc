// SPDX-License-Identifier: Apache-2.0
#include "config/job_help.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "config/field_path.h"
#include "config/field_rules.h"
#include "config/job_proto_text.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

using Lines = std::vector<std::string>;
using google::protobuf::FieldDescriptor;

bool IsComment(const std::string& line) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "//");
}

// Appends a sentence to the comment that ends with the last line, or begins one at this indent.
void AppendSentence(const std::string& sentence, size_t indent, Lines& lines) {
  constexpr size_t kColumns = 120;
  std::string& last = lines.back();
  if (IsComment(last) && last.size() + 1 + sentence.size() <= kColumns) {
    absl::StrAppend(&last, " ", sentence);
  } else {
    lines.push_back(absl::StrCat(std::string(indent, ' '), "// ", sentence));
  }
}

// job.proto, with each field's rule as the last sentence of its comment.
Lines JobLines() {
  const Lines written = absl::StrSplit(std::string(kJobProtoText), '\n');
  const google::protobuf::Descriptor* message = nullptr;
  Lines lines;
  for (const std::string& line : written) {
    const size_t options = line.find(" [(rule)");
    const Lines words = absl::StrSplit(line.substr(0, options), ' ', absl::SkipEmpty());
    if (line.starts_with("message ")) {
      message = JobConfig::descriptor()->file()->FindMessageTypeByName(words[1]);
    }
    if (options == std::string::npos) {
      lines.push_back(line);
      continue;
    }
    const FieldDescriptor* field = message->FindFieldByName(words[words.size() - 3]);  // NAME = 1
    const std::string sentence = RuleText(field->options().GetExtension(rule));
    if (!sentence.empty()) AppendSentence(sentence, line.find_first_not_of(' '), lines);
    lines.push_back(absl::StrCat(line.substr(0, options), ";"));
  }
  return lines;
}

// Line of [begin, end) that begins with `start` behind its indent, and the comment above that line.
struct Declaration {
  size_t comment;
  size_t line;
};
Declaration Find(const Lines& lines, const std::string& start, size_t begin, size_t end) {
  Declaration found{.comment = begin, .line = begin};
  while (found.line < end &&
         !absl::StartsWith(absl::StripLeadingAsciiWhitespace(lines[found.line]), start)) {
    ++found.line;
  }
  TUG_CHECK(found.line < end) << start;
  found.comment = found.line;
  while (found.comment > begin && IsComment(lines[found.comment - 1])) --found.comment;
  return found;
}

// The line after the block that begins at `line`, and ends with a brace at the same indent.
size_t EndOfBlock(const Lines& lines, size_t line) {
  const size_t indent = lines[line].find_first_not_of(' ');
  const std::string last = absl::StrCat(std::string(indent, ' '), "}");
  while (line < lines.size() && lines[line] != last) ++line;
  return line + 1;
}

// Appends lines [begin, end) without the indent of the first.
void Append(const Lines& lines, size_t begin, size_t end, std::string& text) {
  const size_t indent = lines[begin].find_first_not_of(' ');
  for (size_t i = begin; i < end; ++i) {
    absl::StrAppend(&text, lines[i].substr(std::min(indent, lines[i].size())), "\n");
  }
}

// Type and name as written in job.proto: "optional uint64 steps".
std::string WrittenType(const FieldDescriptor& field, const Lines& lines, size_t begin,
                        size_t end) {
  const std::string declares = absl::StrCat(" ", field.name(), " = ", field.number(), ";");
  for (size_t i = begin; i < end; ++i) {
    const size_t at = lines[i].find(declares);
    if (at == std::string::npos || IsComment(lines[i])) continue;
    return std::string(absl::StripLeadingAsciiWhitespace(lines[i].substr(0, at)));
  }
  TUG_CHECK(false) << declares;
  return "";
}

}  // namespace

std::string JobHelp() {
  const std::string text = absl::StrJoin(JobLines(), "\n");
  return text.substr(0, text.find("syntax =")) + text.substr(text.find("message JobConfig"));
}

absl::StatusOr<std::string> FieldHelp(const std::string& path) {
  const auto& root = *JobConfig::descriptor();
  ASSIGN_OR_RETURN(const FieldDescriptor* const found, FindFieldType(root, path));
  const FieldDescriptor& field = *found;
  if (field.file() != root.file()) return absl::StrCat(path, ": ", field.DebugString());
  const Lines lines = JobLines();
  const auto block = [&](const std::string& name) {
    return Find(lines, absl::StrCat("message ", name, " {"), 0, lines.size());
  };
  const size_t begin = block(field.containing_type()->name()).line;
  const size_t end = EndOfBlock(lines, begin);
  const std::string type = WrittenType(field, lines, begin, end);
  const std::string declaration = absl::StrCat(type, " ", field.name(), " = ");
  const Declaration at = Find(lines, declaration, begin, end);
  std::string text = absl::StrCat(path, ": ", type, "\n");
  if (at.comment < at.line) Append(lines, at.comment, at.line, text);
  const size_t trailing = lines[at.line].find("//");
  if (trailing != std::string::npos) absl::StrAppend(&text, lines[at.line].substr(trailing), "\n");
  if (const auto* values = field.enum_type(); values != nullptr) {
    const auto* owner = values->containing_type();
    const size_t from = owner == nullptr ? 0 : block(owner->name()).line;
    const size_t line =
        Find(lines, absl::StrCat("enum ", values->name(), " {"), from, lines.size()).line;
    Append(lines, line, EndOfBlock(lines, line), text);
  }
  const auto* group = field.message_type();
  if (group != nullptr && group->file() == root.file()) {
    const Declaration whole = block(group->name());
    Append(lines, whole.comment, EndOfBlock(lines, whole.line), text);
  }
  return text;
}

}  // namespace tug
