// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_XML_TEXT_H_
#define TUG_BASE_XML_TEXT_H_

#include <string>
#include <string_view>

namespace tug {

// Escapes text for XML and HTML content and double-quoted attributes. Pure, thread-safe.
inline std::string XmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace tug

#endif  // TUG_BASE_XML_TEXT_H_
