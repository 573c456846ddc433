#include "experiment/svg_text.h"

#include "absl/strings/str_format.h"
#include "base/xml_text.h"

namespace tug {

std::string SvgText(double x, double y, const char* anchor, const char* style,
                    const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n",
                         x, y, anchor, style, XmlEscaped(text));
}

}  // namespace tug
