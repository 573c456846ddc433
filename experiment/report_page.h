#ifndef TUG_EXPERIMENT_REPORT_PAGE_H_
#define TUG_EXPERIMENT_REPORT_PAGE_H_

// What the pages of all experiments have in common. A page needs nothing else: no script, no font,
// no picture from elsewhere. It is light or dark as the reader's browser is, and light on paper.
// Functions are pure and thread-safe; text is escaped.

#include <string>
#include <utility>
#include <vector>

namespace tug {

// To the heading, with the style of the page and the patterns that its pictures use. Colours are
// CSS variables: --ink, --soft (text), --card, --grid, --busy, --wait, --bound.
std::string PageBegin(const std::string& title);
std::string PageEnd();

// What the figures rest on, and the command, as a list.
std::string SettingsHtml(const std::vector<std::pair<std::string, std::string>>& settings,
                         const std::string& command);

// A card with a table; the first line has the headings. A line with an entry in `groups_begin` has
// a rule above it.
std::string TableHtml(const std::vector<std::vector<std::string>>& table,
                      const std::vector<size_t>& groups_begin);

// Such lines: those whose first column has another value than the line above.
std::vector<size_t> GroupsBegin(const std::vector<std::vector<std::string>>& table);

// A heading, a paragraph (HTML) and a picture on a card; nothing without the picture.
std::string FigureHtml(const std::string& heading, const std::string& text, const std::string& svg);
// A list of texts; nothing without any.
std::string ListHtml(const std::vector<std::string>& texts);

// Texts that are as they are, behind a summary that opens them; a click selects a whole one.
// Nothing without any.
std::string DetailsHtml(const std::string& summary, const std::vector<std::string>& texts);
// A picture of a page as a file of its own.
std::string SvgFile(const std::string& svg);

// The CSS colour of a picture's number `series`, the same in all pictures of a page.
std::string SeriesColor(size_t series);
// What has which of these colours.
std::string SeriesLegend(const std::vector<std::string>& names);

// A patch of a colour, for legends. `style`: CSS of it.
std::string Swatch(const std::string& style);
// That of waiting, and that of a bound.
std::string WaitSwatch();
std::string BoundSwatch();

}  // namespace tug

#endif  // TUG_EXPERIMENT_REPORT_PAGE_H_
