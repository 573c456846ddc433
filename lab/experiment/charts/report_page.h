// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_CHARTS_REPORT_PAGE_H_
#define TUG_LAB_EXPERIMENT_CHARTS_REPORT_PAGE_H_

// Parts of all experiment pages. A page is self-contained, without scripts, fonts or external
// pictures. It follows the browser's light or dark mode, and is light on paper. Functions are pure
// and thread-safe; text is escaped.

#include <string>
#include <utility>
#include <vector>

namespace tug {

// The page with its heading, which is the question that it answers; with its style and the patterns
// that its pictures use. Colours are CSS variables: --ink, --soft (text), --card, --grid, --busy,
// --wait, --bound.
std::string PageBegin(const std::string& title, const std::string& heading);
std::string PageEnd();

// The sentence that answers the page's question; "" if it is empty.
std::string AnswerHtml(const std::string& answer);

// A list of settings that the figures depend on, and the command.
std::string SettingsHtml(const std::vector<std::pair<std::string, std::string>>& settings,
                         const std::string& command);

// A card with a table; the first row has the headings. Rows listed in `groups_begin` have a rule
// above them.
std::string TableHtml(const std::vector<std::vector<std::string>>& table,
                      const std::vector<size_t>& groups_begin);

// Rows whose first column differs from the row above.
std::vector<size_t> GroupsBegin(const std::vector<std::vector<std::string>>& table);

// A heading, a paragraph (HTML) and a picture on a card; "" without a picture.
std::string FigureHtml(const std::string& heading, const std::string& text, const std::string& svg);
// A list of texts; "" without any.
std::string ListHtml(const std::vector<std::string>& texts);

// Preformatted texts behind a summary that expands; a click selects a whole text. "" without any.
std::string DetailsHtml(const std::string& summary, const std::vector<std::string>& texts);
// A picture of a page as a self-contained SVG file.
std::string SvgFile(const std::string& svg);

// CSS colour of series number `series`, the same in all pictures of a page.
std::string SeriesColor(size_t series);

// A patch of a colour, for legends. `style`: its CSS.
std::string Swatch(const std::string& style);
// Patches for waiting and for a bound.
std::string WaitSwatch();
std::string BoundSwatch();

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_CHARTS_REPORT_PAGE_H_
