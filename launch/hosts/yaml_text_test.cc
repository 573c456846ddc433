// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/yaml_text.h"

#include "gtest/gtest.h"
#include "yaml-cpp/yaml.h"

namespace tug {
namespace {

using Json = nlohmann::ordered_json;

TEST(YamlText, KeepsEveryStringAsAString) {
  const std::string strings[] = {
      "",           "plain",    "yes",         "No",          "null",     "~",         "1",
      "1e3",        "0x10",     "12:30",       "2001-01-01",  "-",        "- a",       "a: b",
      "a #b",       " a",       "a ",          "'a'",         "\"a\"",    "{a}",       "[a",
      "&a",         "*a",       "!a",          "%a",          "@a",       "`a`",       "|",
      ">",          "a\tb",     "a\\b",        "a\rb",        "$(A)",     "caf\u00e9", "\u4e2d",
      "a\nb",       "a\nb\n",   "a\nb\n\n",    "\na\n",       " a\n b\n", "a\n\tb\n",  "a \nb\n",
      "a\n\n\nb\n", "---\na\n", "# a\nb: c\n", "a\n  b\nc\n", "\n",       "\x7f",      "/dev/shm"};
  Json list = Json::array();
  for (const std::string& text : strings) list.push_back(text);
  const std::string yaml = YamlText({{"", {{"list", list}}}});
  const YAML::Node node = YAML::Load(yaml);
  ASSERT_EQ(node["list"].size(), std::size(strings)) << yaml;
  for (size_t i = 0; i < std::size(strings); ++i) {
    EXPECT_EQ(node["list"][i].as<std::string>(), strings[i]) << yaml;
  }
}

TEST(YamlText, KeepsStructureOrderAndDocuments) {
  const std::string yaml =
      YamlText({{"two\nlines", {{"b", 1}, {"a", {{"on", true}, {"none", Json::array()}}}}},
                {"", {{"list", {{{"x", -5}, {"y", "z"}}, "t"}}}}});
  EXPECT_EQ(yaml,
            "---\n# two\n# lines\nb: 1\na:\n  \"on\": true\n  none:\n    []\n"
            "---\nlist:\n  - x: -5\n    \"y\": z\n  - t\n");
  EXPECT_EQ(YAML::LoadAll(yaml).size(), 2u);
}

TEST(YamlText, WritesAFileAsItIs) {
  const std::string yaml = YamlText({{"", {{"job", "name: 'x'\nmodel {\n  layers: 2\n}\n"}}}});
  EXPECT_EQ(yaml, "---\njob: |\n  name: 'x'\n  model {\n    layers: 2\n  }\n");
}

}  // namespace
}  // namespace tug
