#ifndef TUG_EXPERIMENT_SVG_TEXT_H_
#define TUG_EXPERIMENT_SVG_TEXT_H_

#include <string>

namespace tug {

// A <text> of an SVG at (x, y), escaped. `anchor`: "start", "middle" or "end"; `style`: its class.
std::string SvgText(double x, double y, const char* anchor, const char* style,
                    const std::string& text);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SVG_TEXT_H_
