// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/yaml_text.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "yaml-cpp/yaml.h"

namespace tug {
namespace {

using OrderedJson = nlohmann::ordered_json;

// False for words that YAML 1.1 does not read as strings, and for text that does not look like a
// name.
bool IsPlain(const std::string& text) {
  static const std::set<std::string> kWords = {"y",    "n",   "yes",  "no",   "on",
                                               "true", "off", "null", "false"};
  if (text.empty() || !(absl::ascii_isalpha(text[0]) || text[0] == '/')) return false;
  if (kWords.contains(absl::AsciiStrToLower(text))) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

// Whether parsers return the same bytes from a literal block: no line whose indentation or end they
// would change, and no character that some parser treats as a line end.
bool FitsLiteral(const std::string& text) {
  if (!absl::StrContains(text, '\n') || !absl::EndsWith(text, "\n") ||
      absl::EndsWith(text, "\n\n") || text[0] == ' ' || text[0] == '\n' || text[0] == '\t' ||
      absl::StrContains(text, "\n\t")) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c == '\n' || c == '\t' || absl::ascii_isprint(c);
  });
}

void EmitString(YAML::Emitter& out, const std::string& text) {
  if (FitsLiteral(text)) {
    // The emitter adds a line end after a literal.
    out << YAML::Literal << text.substr(0, text.size() - 1);
  } else if (IsPlain(text)) {
    out << text;
  } else {
    out << YAML::DoubleQuoted << text;
  }
}

void Emit(YAML::Emitter& out, const OrderedJson& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key;
      EmitString(out, key);
      out << YAML::Value;
      Emit(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const OrderedJson& element : value) Emit(out, element);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    EmitString(out, value.get<std::string>());
  } else if (value.is_boolean()) {
    out << value.get<bool>();
  } else {
    out << value.get<int64_t>();
  }
}

}  // namespace

std::string YamlText(const std::vector<YamlDocument>& documents) {
  std::string text;
  for (const YamlDocument& document : documents) {
    YAML::Emitter out;
    Emit(out, document.value);
    absl::StrAppend(&text, "---\n");
    if (!document.comment.empty()) {
      for (const absl::string_view line : absl::StrSplit(document.comment, '\n')) {
        absl::StrAppend(&text, "# ", line, "\n");
      }
    }
    absl::StrAppend(&text, out.c_str(), "\n");
  }
  return text;
}

}  // namespace tug
