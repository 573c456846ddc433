#include "cli/plan_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "experiment/markdown_table.h"

namespace tug {
namespace {

struct Unit {
  double bytes;
  const char* name;
};

// The largest that leaves a whole one, but terabytes only for ten thousand gigabytes: the lectures
// compare gigabytes.
Unit DecimalUnit(double bytes) {
  if (bytes >= 1e13) return {1e12, "TB"};
  if (bytes >= 1e9) return {1e9, "GB"};
  if (bytes >= 1e6) return {1e6, "MB"};
  if (bytes >= 1e3) return {1e3, "kB"};
  return {1, "B"};
}

Unit BinaryUnit(double bytes) {
  if (bytes >= 1e4 * 0x1p30) return {0x1p40, "TiB"};
  if (bytes >= 0x1p30) return {0x1p30, "GiB"};
  if (bytes >= 0x1p20) return {0x1p20, "MiB"};
  if (bytes >= 0x1p10) return {0x1p10, "KiB"};
  return {1, "B"};
}

// "2800" -> "2,800"; of "31.4" nothing.
std::string WithCommas(std::string number) {
  const size_t point = std::min(number.find('.'), number.size());
  for (size_t at = point; at > 3; at -= 3) number.insert(at - 3, ",");
  return number;
}

}  // namespace

std::string PlanText(const std::vector<PlanSection>& sections) {
  std::string text;
  for (const PlanSection& section : sections) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", section.title, "\n");
    if (!section.rows.empty()) {
      std::vector<std::vector<std::string>> table = {section.headings};
      for (const std::vector<PlanCell>& row : section.rows) {
        TUG_CHECK(row.size() == section.headings.size());
        std::vector<std::string>& line = table.emplace_back();
        for (const PlanCell& cell : row) line.push_back(cell.text);
      }
      absl::StrAppend(&text, "\n", MarkdownTable(std::move(table)));
    }
    for (const std::string& note : section.notes) absl::StrAppend(&text, "  ", note, "\n");
  }
  return text;
}

nlohmann::ordered_json PlanJson(const std::vector<PlanSection>& sections) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const PlanSection& section : sections) {
    nlohmann::ordered_json& rows = all[section.key] = nlohmann::ordered_json::array();
    for (const std::vector<PlanCell>& row : section.rows) {
      TUG_CHECK(row.size() == section.keys.size());
      nlohmann::ordered_json& object = rows.emplace_back(nlohmann::ordered_json::object());
      for (size_t i = 0; i < row.size(); ++i) {
        if (!section.keys[i].empty()) object[section.keys[i]] = row[i].value;
      }
    }
  }
  return all;
}

std::string DecimalBytes(double bytes) {
  const Unit unit = DecimalUnit(bytes);
  const std::string number = absl::StrFormat("%.1f", bytes / unit.bytes);
  return absl::StrCat(WithCommas(std::string(absl::StripSuffix(number, ".0"))), " ", unit.name);
}

std::string ExactBytes(double bytes) {
  const Unit unit = DecimalUnit(bytes);
  return absl::StrCat(WithCommas(absl::StrFormat("%.12g", bytes / unit.bytes)), " ", unit.name);
}

std::string BinaryBytes(double bytes) {
  const Unit unit = BinaryUnit(bytes);
  return absl::StrCat(WithCommas(absl::StrFormat("%.2f", bytes / unit.bytes)), " ", unit.name);
}

std::string SecondsText(double seconds) {
  if (seconds >= 1000) return CountText(seconds) + " s";
  if (seconds >= 1 || seconds == 0) return absl::StrFormat("%.4g s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.4g ms", seconds * 1e3);
  return absl::StrFormat("%.4g us", seconds * 1e6);
}

std::string CountText(double count) { return WithCommas(absl::StrFormat("%.0f", count)); }

}  // namespace tug
