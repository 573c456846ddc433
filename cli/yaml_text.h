#ifndef TUG_CLI_YAML_TEXT_H_
#define TUG_CLI_YAML_TEXT_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace tug {

// A document of a YAML stream.
struct YamlDocument {
  std::string comment;           // lines before it; may be empty
  nlohmann::ordered_json value;  // objects keep their order
};

// As a stream of documents, in block style. A string is in quotes unless every parser takes it for
// one without (YAML 1.1 reads `yes`, `1e3` and `12:30` as others); one of several lines is a
// literal block where that keeps every byte. REQUIRES: strings are UTF-8. Pure.
std::string YamlText(const std::vector<YamlDocument>& documents);

}  // namespace tug

#endif  // TUG_CLI_YAML_TEXT_H_
