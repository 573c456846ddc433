// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/report_page.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/charts/chart.h"
#include "base/xml_text.h"

namespace tug {
namespace {

constexpr size_t kSeriesColors = 8;

constexpr char kStyle[] = R"css(
:root { color-scheme: light dark; --ink: #1d2530; --soft: #5b6675; --page: #ffffff; --card: #f6f7f9;
  --grid: #dfe3e8; --wait: #d4493a; --bound: #0b7a4b; --busy: #7c94b5;
  --series0: #33588c; --series1: #d98b1f; --series2: #2f9e62; --series3: #c9444a; --series4: #8657b8;
  --series5: #1594a8; --series6: #8a6b42; --series7: #6b7280; --slow: #e8a33d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e9ef; --soft: #9aa6b5; --page: #14181e;
  --card: #1c222a; --grid: #333c47; --wait: #ff7b6b; --bound: #4fd19a; --busy: #6d86a8;
  --series0: #7fa3d9; --series1: #eeac4f; --series2: #55c389; --series3: #ee7a7f; --series4: #b592e0;
  --series5: #4cc3d6; --series6: #bd9c6f; --series7: #9aa3b0; --slow: #c98a2e; } }
@media print { :root { color-scheme: light; --ink: #1d2530; --soft: #4b5563; --page: #ffffff;
  --card: #ffffff; --grid: #d5dae1; --wait: #c23a2c; --bound: #0b7a4b; --busy: #7c94b5;
  --series0: #33588c; --series1: #d98b1f; --series2: #2f9e62; --series3: #c9444a; --series4: #8657b8;
  --series5: #1594a8; --series6: #8a6b42; --series7: #6b7280; --slow: #e8a33d; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .card, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
body { margin: 0 auto; padding: 24px; max-width: 1152px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 6px; }
h3 { font-size: 16px; margin: 24px 0 6px; }
h1, h2, h3, p, li { overflow-wrap: anywhere; }
p.answer { font-size: 18px; margin: 10px 0 16px; padding-left: 14px; border-left: 4px solid var(--bound); }
p { margin: 6px 0 12px; max-width: 900px; } .note { color: var(--soft); }
code { font: 13px ui-monospace, Menlo, Consolas, monospace; }
.card { background: var(--card); border-radius: 8px; padding: 12px 16px; overflow-x: auto; }
svg { display: block; max-width: 100%; height: auto;
  font: 12px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 4px 12px 4px 0; text-align: right; vertical-align: top; }
th { color: var(--soft); font-weight: 600; border-bottom: 1px solid var(--grid); vertical-align: bottom; }
td.text, th.text { text-align: left; }
tr.first td { border-top: 1px solid var(--grid); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 8px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
text { fill: var(--ink); } text.small, tspan.small { fill: var(--soft); } tspan.small { font-weight: 400; font-size: 12px; }
text.name { font-weight: 600; font-size: 14px; }
text.block { fill: #17202b; font-size: 11px; } text.waits { font-size: 11px; paint-order: stroke;
  stroke: var(--card); stroke-width: 4px; }
rect.row { fill: var(--grid); opacity: 0.35; } rect.span { stroke: var(--card); stroke-width: 0.4; }
rect.wait { fill: url(#hatch); stroke: var(--wait); stroke-width: 0.6; }
rect.busy { fill: var(--busy); } line.clear { stroke: var(--card); stroke-width: 5; }
rect.step, rect.slowstep { fill: var(--busy); stroke: var(--card); stroke-width: 1.2; } rect.slowstep { fill: var(--slow); }
text.slowname { fill: var(--ink); font-weight: 600; } circle.dot { stroke: var(--card); stroke-width: 0.8; }
ul { margin: 6px 0 12px; padding-left: 20px; max-width: 900px; } line.grid { stroke: var(--grid); } line.end { stroke: var(--ink); stroke-width: 1.5; }
line.bound { stroke: var(--bound); stroke-width: 1.6; stroke-dasharray: 5 4; }
line.range { stroke: var(--ink); stroke-width: 1.4; }
details { margin: 4px 0; } summary { cursor: pointer; color: var(--soft); }
pre { font: 12px/1.5 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
  margin: 4px 0 10px; } pre.copy { user-select: all; -webkit-user-select: all; }
.key { display: inline-block; width: 22px; height: 11px; margin: 0 5px 0 12px; border-radius: 2px; }
/* A phone: wide tables and pictures scroll in their cards; the first column of a table stays. */
@media screen and (max-width: 700px) { body { padding: 12px; } h1 { font-size: 20px; } p.answer { font-size: 16px; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; } .card { padding: 8px 10px; } .card svg { min-width: 760px; }
  table { font-size: 13px; } tr > :first-child { position: sticky; left: -10px; background: var(--card); padding-left: 10px;
    max-width: 34vw; } }
)css";

// Patterns that every picture of the page uses.
constexpr char kPatterns[] =
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"var(--card)\"/>"
    "<rect width=\"2\" height=\"6\" fill=\"var(--wait)\" "
    "opacity=\"0.55\"/></pattern></defs>";

// A cell whose interval stays on one line: a narrow table breaks the line before it.
std::string CellHtml(const std::string& cell) {
  constexpr char kHardSpace[] = "\u00a0";
  std::string text;
  bool together = false;
  for (const char letter : cell) {
    if (letter == '[') together = true;
    if (letter == ']') together = false;
    absl::StrAppend(&text, together && letter == ' ' ? kHardSpace : std::string(1, letter));
  }
  return XmlEscaped(
      absl::StrReplaceAll(text, {{", p ", absl::StrCat(",", kHardSpace, "p", kHardSpace)}}));
}

// Whether a column has text. Columns of numbers are right-aligned.
bool HasWords(const std::vector<std::vector<std::string>>& table, size_t column) {
  for (size_t i = 1; i < table.size(); ++i) {
    const std::string& cell = table[i][column];
    if (!cell.empty() && absl::ascii_isalpha(static_cast<unsigned char>(cell[0]))) return true;
  }
  return false;
}

}  // namespace

std::string PageBegin(const std::string& title, const std::string& heading) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>",
      XmlEscaped(title), "</title>\n<style>", kStyle, "</style>\n</head>\n<body>\n",
      "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\">", kPatterns,
      "</svg>\n<h1>", XmlEscaped(heading), "</h1>\n");
}

std::string PageEnd() { return "</body>\n</html>\n"; }

std::string AnswerHtml(const std::string& answer) {
  if (answer.empty()) return "";
  return absl::StrCat("<p class=\"answer\"><b>Answer:</b> ", XmlEscaped(answer), "</p>\n");
}

std::string SettingsHtml(const std::vector<std::pair<std::string, std::string>>& settings,
                         const std::string& command) {
  std::string html = "<dl>\n";
  for (const auto& [name, value] : settings) {
    absl::StrAppend(&html, "<dt>", XmlEscaped(name), "</dt><dd>", XmlEscaped(value), "</dd>\n");
  }
  return html + "<dt>command</dt><dd><code>" + XmlEscaped(command) + "</code></dd>\n</dl>\n";
}

std::string TableHtml(const std::vector<std::vector<std::string>>& table,
                      const std::vector<size_t>& groups_begin) {
  std::string html = "<div class=\"card\"><table>\n";
  std::vector<bool> words;
  for (size_t column = 0; !table.empty() && column < table[0].size(); ++column) {
    words.push_back(HasWords(table, column));
  }
  for (size_t i = 0; i < table.size(); ++i) {
    const bool heading = i == 0;
    const bool first = std::find(groups_begin.begin(), groups_begin.end(), i) != groups_begin.end();
    absl::StrAppend(&html, first ? "<tr class=\"first\">" : "<tr>");
    for (size_t column = 0; column < table[i].size(); ++column) {
      const char* element = heading ? "th" : "td";
      absl::StrAppend(&html, "<", element, words[column] ? " class=\"text\">" : ">",
                      CellHtml(table[i][column]), "</", element, ">");
    }
    absl::StrAppend(&html, "</tr>\n");
  }
  return html + "</table></div>\n";
}

std::vector<size_t> GroupsBegin(const std::vector<std::vector<std::string>>& table) {
  std::vector<size_t> groups;
  for (size_t i = 2; i < table.size(); ++i) {
    if (table[i][0] != table[i - 1][0]) groups.push_back(i);
  }
  return groups;
}

std::string FigureHtml(const std::string& heading, const std::string& text,
                       const std::string& svg) {
  if (svg.empty()) return "";
  return absl::StrCat("<h3>", XmlEscaped(heading), "</h3>\n<p>", text,
                      "</p>\n<div class=\"card\">\n", svg, "</div>\n");
}

std::string ListHtml(const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  std::string html = "<ul>\n";
  for (const std::string& text : texts) absl::StrAppend(&html, "<li>", XmlEscaped(text), "</li>\n");
  return html + "</ul>\n";
}

std::string DetailsHtml(const std::string& summary, const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  std::string html = absl::StrCat("<details><summary>", XmlEscaped(summary), "</summary>\n");
  for (const std::string& text : texts) {
    absl::StrAppend(&html, "<pre class=\"copy\">", XmlEscaped(text), "</pre>\n");
  }
  return html + "</details>\n";
}

std::string SvgFile(const std::string& svg) { return SvgFile(svg, kStyle, kPatterns); }

std::string SeriesColor(size_t series) {
  return absl::StrCat("var(--series", series % kSeriesColors, ")");
}

std::string Swatch(const std::string& style) {
  return "<span class=\"key\" style=\"" + style + "\"></span>";
}

std::string WaitSwatch() {
  return Swatch(
      "background:repeating-linear-gradient(45deg, var(--wait) 0 2px, transparent 2px 5px)");
}

std::string BoundSwatch() {
  return Swatch("height:0;border-top:2px dashed var(--bound);margin-bottom:4px");
}

}  // namespace tug
