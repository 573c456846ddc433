// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/data_summary.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/observe/progress_line.h"

namespace tug {
namespace {

constexpr size_t kMaxShown = 20;

std::string Counted(uint64_t number, const char* noun) {
  return absl::StrCat(WithThousands(number), " ", noun, number == 1 ? "" : "s");
}

// Joins the first `items`, and the number of further ones.
std::string Shortened(std::vector<std::string> items) {
  const size_t more = items.size() - std::min(items.size(), kMaxShown);
  items.resize(items.size() - more);
  if (more > 0) items.push_back(absl::StrCat("and ", WithThousands(more), " more"));
  return absl::StrJoin(items, ", ");
}

// "2 files", "1 file of JSON lines", "3 files, 2 of them JSON lines"
std::string FileCounts(const TextSource& text) {
  const std::string files = Counted(text.files().size(), "file");
  const auto documents = std::ranges::count_if(text.files(), [&](const TextSource::File& file) {
    return HoldsDocuments(file.path, text.rules());
  });
  if (documents == 0) return files;
  if (static_cast<size_t>(documents) == text.files().size()) return files + " of JSON lines";
  return absl::StrCat(files, ", ", documents, " of them JSON lines");
}

std::string LabelCounts(const TokenFile& file) {
  const std::vector<std::string>& labels = file.info().labels;
  std::vector<uint64_t> lines(labels.size());
  for (uint64_t i = 0; i < file.info().lines; ++i) ++lines.at(file.Line(i).second);
  std::vector<std::string> counts;
  for (size_t i = 0; i < labels.size(); ++i) {
    counts.push_back(absl::StrCat(absl::Utf8SafeCEscape(labels[i]), " ", WithThousands(lines[i])));
  }
  return Shortened(std::move(counts));
}

}  // namespace

std::string DataSummary(const TextSource& text, const TokenFile& file) {
  const TokenFileInfo& info = file.info();
  std::string summary = absl::StrCat("text: ", FileCounts(text), ", ");
  if (info.form != TextForm::kRunning) {
    absl::StrAppend(&summary, Counted(info.lines, "line"), ", ");
  }
  absl::StrAppend(&summary, Counted(info.text_bytes, "byte"), ", ", Counted(info.tokens, "token"));
  if (info.form == TextForm::kLabelledLines) {
    absl::StrAppend(&summary, "; labels: ", LabelCounts(file));
  }
  if (!text.left_out().empty()) {
    absl::StrAppend(&summary, "; not read: ", Shortened(text.left_out()));
  }
  return summary;
}

}  // namespace tug
