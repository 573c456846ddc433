// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPERIMENT_CHARTS_SVG_H_
#define TUG_EXPERIMENT_CHARTS_SVG_H_

// SVG elements for the pictures of a page, which has their styles (report_page.h). Lengths are in
// units of the picture. Pure, thread-safe.

#include <string>

namespace tug {

// Width of every picture of a page.
inline constexpr double kPictureWidth = 1120;

// A <text> at (x, y), escaped. `anchor`: "start", "middle" or "end"; `style`: CSS class.
std::string SvgText(double x, double y, const char* anchor, const char* style,
                    const std::string& text);
// A <rect>; a negative width counts as 0.
std::string SvgRect(double x, double y, double width, double height, const char* style);
// A coloured bar with a tooltip; a hatched bar for waiting.
std::string SvgBar(double x, double y, double width, double height, const std::string& fill,
                   const std::string& title);
std::string SvgWaitBar(double x, double y, double width, double height, const std::string& title);
std::string SvgLine(double x1, double y1, double x2, double y2, const char* style);
// An <svg> around `body`. Its visible area begins `above` above y = 0.
std::string SvgPicture(double height, const std::string& body, double above = 0);

}  // namespace tug

#endif  // TUG_EXPERIMENT_CHARTS_SVG_H_
