#ifndef TUG_EXPERIMENT_SVG_H_
#define TUG_EXPERIMENT_SVG_H_

// Elements of the pictures of a page (report_page.h has their styles). Lengths in units of the
// picture. Pure, thread-safe.

#include <string>

namespace tug {

// Width of every picture of a page.
inline constexpr double kPictureWidth = 1120;

// A <text> at (x, y), escaped. `anchor`: "start", "middle" or "end"; `style`: its class.
std::string SvgText(double x, double y, const char* anchor, const char* style,
                    const std::string& text);
// A <rect>; a negative width is drawn as none.
std::string SvgRect(double x, double y, double width, double height, const char* style);
// One of a colour, with a text that a pointer over it shows; and one that stands for waiting.
std::string SvgBar(double x, double y, double width, double height, const std::string& fill,
                   const std::string& title);
std::string SvgWaitBar(double x, double y, double width, double height, const std::string& title);
std::string SvgLine(double x1, double y1, double x2, double y2, const char* style);
// The <svg> around them; what is drawn down to `above` above 0 is seen too.
std::string SvgPicture(double height, const std::string& body, double above = 0);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SVG_H_
