// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_HOSTS_YAML_TEXT_H_
#define TUG_LAUNCH_HOSTS_YAML_TEXT_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace tug {

// A document of a YAML stream.
struct YamlDocument {
  std::string comment;           // lines before it; may be empty
  nlohmann::ordered_json value;  // objects keep their order
};

// Formats a stream of documents in block style. Quotes strings unless every parser reads them
// unquoted as strings (YAML 1.1 reads `yes`, `1e3` and `12:30` as other types); writes a multi-line
// string as a literal block if that keeps every byte. REQUIRES: strings are UTF-8. Pure.
std::string YamlText(const std::vector<YamlDocument>& documents);

}  // namespace tug

#endif  // TUG_LAUNCH_HOSTS_YAML_TEXT_H_
