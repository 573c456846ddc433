// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_CHARTS_MARKDOWN_TABLE_H_
#define TUG_BASE_CHARTS_MARKDOWN_TABLE_H_

#include <string>
#include <vector>

namespace tug {

// A Markdown table with aligned columns, readable in a terminal too. `table`: cells as text; the
// first row has the headings; all rows have the same length. Pure, thread-safe.
std::string MarkdownTable(std::vector<std::vector<std::string>> table);

}  // namespace tug

#endif  // TUG_BASE_CHARTS_MARKDOWN_TABLE_H_
