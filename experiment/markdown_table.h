#ifndef TUG_EXPERIMENT_MARKDOWN_TABLE_H_
#define TUG_EXPERIMENT_MARKDOWN_TABLE_H_

#include <string>
#include <vector>

namespace tug {

// A table of Markdown whose columns are aligned, so that it reads well in a terminal too. `table`:
// cells as text, the first line has the headings; all lines are as long. Pure, thread-safe.
std::string MarkdownTable(std::vector<std::vector<std::string>> table);

}  // namespace tug

#endif  // TUG_EXPERIMENT_MARKDOWN_TABLE_H_
