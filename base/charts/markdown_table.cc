// SPDX-License-Identifier: Apache-2.0
#include "base/charts/markdown_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tug {

std::string MarkdownTable(std::vector<std::vector<std::string>> table) {
  if (table.empty()) return "";
  for (std::vector<std::string>& line : table) {
    for (std::string& cell : line) absl::StrReplaceAll({{"|", "\\|"}}, &cell);
  }
  std::vector<size_t> widths(table[0].size(), 3);
  for (const std::vector<std::string>& line : table) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  table.insert(table.begin() + 1, std::vector<std::string>());
  for (const size_t width : widths) table[1].push_back(std::string(width, '-'));
  std::string text;
  for (std::vector<std::string>& line : table) {
    for (size_t i = 0; i < line.size(); ++i) line[i].resize(widths[i], ' ');
    absl::StrAppend(&text, "| ", absl::StrJoin(line, " | "), " |\n");
  }
  return text;
}

}  // namespace tug
