// SPDX-License-Identifier: Apache-2.0
#include "data/line_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "data/text/utf8.h"

namespace tug {
namespace {

const char* Layout(TextForm form) {
  return form == TextForm::kLabelledLines ? "label<TAB>text" : "source<TAB>target";
}

// Column names in headers of label and pair tables.
constexpr absl::string_view kColumnNames[] = {
    "answer",   "category",  "class",     "idx",       "input",  "label", "labels",
    "output",   "premise",   "question",  "review",    "s1",     "s2",    "score",
    "sentence", "sentence1", "sentence2", "sentiment", "source", "src",   "target",
    "tgt",      "text",      "trg",       "hypothesis"};

bool IsColumnName(std::string_view side) {
  return std::ranges::any_of(kColumnNames, [&](absl::string_view name) {
    return absl::EqualsIgnoreCase({side.data(), side.size()}, name);
  });
}

// Strips white space at both ends.
std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kWhiteSpace = " \t\r\v\f";
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

// Strips the newline and the carriage returns before it.
std::string_view WithoutLineEnd(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Describes a byte that is not allowed in a line; null if there is none.
const char* StrangeBytes(std::string_view line) {
  if (line.find('\0') != std::string_view::npos) return "has a NUL byte";
  if (line.find('\r') != std::string_view::npos) return "has a carriage return inside";
  if (line.starts_with(kByteOrderMark)) return "begins with a byte order mark";
  return nullptr;
}

// Assembles the lines of one file from its pieces.
class LineCutter {
 public:
  using Take = std::function<absl::Status(const TextLine&)>;
  LineCutter(TextForm form, const Take& take) : form_(form), take_(take) {}

  absl::Status Add(std::string_view piece, uint64_t offset_bytes) {
    if (number_ == 0 && held_.empty()) offset_bytes_ = offset_bytes;
    while (!piece.empty()) {
      const size_t end = piece.find('\n');
      held_.append(piece.substr(0, end));
      if (held_.size() > kMaxLineBytes) {
        return Bad(absl::StrCat("is longer than ", kMaxLineBytes, " bytes"));
      }
      if (end == std::string_view::npos) break;
      piece.remove_prefix(end + 1);
      const uint64_t next_offset = offset_bytes_ + held_.size() + 1;
      RETURN_IF_ERROR(End());
      offset_bytes_ = next_offset;
    }
    return absl::OkStatus();
  }

  // Ends the current line, including the last one of a file.
  absl::Status End() {
    ++number_;
    const std::string_view line = WithoutLineEnd(held_);
    const absl::Status taken = Trimmed(line).empty() ? absl::OkStatus() : TakeLine(line);
    held_.clear();
    return taken;
  }

 private:
  absl::Status TakeLine(std::string_view line) {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return Bad("has no tab");
    if (line.find('\t', tab + 1) != std::string_view::npos) return Bad("has a second tab");
    if (const char* strange = StrangeBytes(line)) return Bad(strange);
    const std::string_view first = Trimmed(line.substr(0, tab));
    const std::string_view second = Trimmed(line.substr(tab + 1));
    if (first.empty()) return Bad("is empty before its tab");
    if (second.empty()) return Bad("is empty after its tab");
    if (number_ == 1 && IsColumnName(first) && IsColumnName(second)) {
      return Bad("is a header of column names");
    }
    if (form_ == TextForm::kLabelledLines && first.size() > 1 && first.front() == '"' &&
        first.back() == '"') {
      return Bad("has its label in quotes");
    }
    const auto offset = [&](std::string_view side) {
      return offset_bytes_ + static_cast<uint64_t>(side.data() - line.data());
    };
    const absl::Status taken = take_({first, second, offset(first), offset(second)});
    if (taken.ok()) return taken;
    return absl::Status(taken.code(), absl::StrCat("line ", number_, ": ", taken.message()));
  }

  absl::Status Bad(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "line ", held_.size() > kMaxLineBytes ? number_ + 1 : number_, " ", what,
        "; with this model.family lines are ", Layout(form_), ": correct or remove the line"));
  }

  const TextForm form_;
  const Take& take_;
  std::string held_;           // bytes of the line whose end has not been read
  uint64_t number_ = 0;        // ended lines
  uint64_t offset_bytes_ = 0;  // offset of `held_` in the file
};

}  // namespace

absl::StatusOr<std::string_view> SideOfLine(std::string_view text) {
  const std::string_view line = WithoutLineEnd(text);
  const std::string_view side = Trimmed(line);
  if (side.empty()) return side;
  const char* strange = StrangeBytes(line);
  if (line.find('\t') != std::string_view::npos) strange = "has a tab";
  if (line.find('\n') != std::string_view::npos) strange = "has a newline inside";
  if (strange == nullptr) return side;
  return absl::InvalidArgumentError(
      absl::StrCat("the line ", strange,
                   ", which a side of a line of the training text cannot have: remove it"));
}

absl::Status ForEachLine(const TextSource& source, TextForm form,
                         const std::function<absl::Status(const TextLine& line)>& take) {
  for (const TextSource::File& file : source.files()) {
    if (HoldsDocuments(file.path, source.rules())) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.path,
          " contains JSON lines, which are running text; with this model.family lines are ",
          Layout(form), ": convert the file"));
    }
    LineCutter cutter(form, take);
    // Pieces may split lines: LineCutter assembles them.
    RETURN_IF_ERROR(source.ForEachPiece(
        file, [](std::string_view text) { return text.size(); },
        [&](std::string_view piece, uint64_t offset_bytes) {
          return cutter.Add(piece, offset_bytes);
        }));
    const absl::Status last = cutter.End();
    if (!last.ok()) return absl::Status(last.code(), absl::StrCat(file.path, ": ", last.message()));
  }
  return absl::OkStatus();
}

EncodedText EncodedTextOf(const TextSource& source, TextForm form) {
  using Cut = TextSource::Cut;
  using Take = TextSource::Take;
  if (form == TextForm::kRunning) {
    return {source.estimated_text_bytes(),
            [&source](const Cut& cut, const Take& take, size_t piece_bytes) {
              return source.ForEachPiece(cut, take, piece_bytes);
            }};
  }
  const auto each = [&source, form](const Cut&, const Take& take, size_t) {
    return ForEachLine(source, form, [&](const TextLine& line) -> absl::Status {
      if (form == TextForm::kLinePairs) RETURN_IF_ERROR(take(line.first, line.first_offset_bytes));
      return take(line.second, line.second_offset_bytes);
    });
  };
  return {source.estimated_text_bytes(), each};
}

absl::StatusOr<std::vector<std::string>> CollectLabels(const TextSource& source) {
  std::set<std::string, std::less<>> labels;
  RETURN_IF_ERROR(
      ForEachLine(source, TextForm::kLabelledLines, [&](const TextLine& line) -> absl::Status {
        if (labels.contains(line.first)) return absl::OkStatus();
        if (line.first.size() > kMaxLabelBytes) {
          return absl::InvalidArgumentError(
              absl::StrCat("its label (the text before the tab) has ", line.first.size(),
                           " bytes: shorten it to ", kMaxLabelBytes, " or fewer"));
        }
        if (!IsUtf8(line.first)) {
          return absl::InvalidArgumentError("its label is not UTF-8: convert the text");
        }
        labels.emplace(line.first);
        if (labels.size() <= kMaxLabels) return absl::OkStatus();
        return absl::InvalidArgumentError(
            absl::StrCat("more than ", kMaxLabels,
                         " different labels: the text before the tab is the class of a line"));
      }));
  return std::vector<std::string>(labels.begin(), labels.end());
}

}  // namespace tug
