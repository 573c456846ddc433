// SPDX-License-Identifier: Apache-2.0
#include "experiment/charts/svg.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/xml_text.h"

namespace tug {

std::string SvgText(double x, double y, const char* anchor, const char* style,
                    const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n",
                         x, y, anchor, style, XmlEscaped(text));
}

std::string SvgRect(double x, double y, double width, double height, const char* style) {
  return absl::StrFormat(
      "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" class=\"%s\"/>\n", x, y,
      std::max(0.0, width), height, style);
}

std::string SvgBar(double x, double y, double width, double height, const std::string& fill,
                   const std::string& title) {
  return absl::StrFormat(
      "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" "
      "fill=\"%s\"><title>%s</title></rect>\n",
      x, y, std::max(0.0, width), height, fill, XmlEscaped(title));
}

std::string SvgWaitBar(double x, double y, double width, double height, const std::string& title) {
  return absl::StrFormat(
      "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" "
      "class=\"wait\"><title>%s</title></rect>\n",
      x, y, std::max(0.0, width), height, XmlEscaped(title));
}

std::string SvgLine(double x1, double y1, double x2, double y2, const char* style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n",
                         x1, y1, x2, y2, style);
}

std::string SvgPicture(double height, const std::string& body, double above) {
  return absl::StrFormat(
      "<svg viewBox=\"0 %.0f %.0f %.0f\" width=\"%.0f\" role=\"img\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n%s</svg>\n",
      above == 0 ? 0.0 : -above, kPictureWidth, height + above, kPictureWidth, body);
}

}  // namespace tug
