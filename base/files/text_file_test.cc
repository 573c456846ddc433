// SPDX-License-Identifier: Apache-2.0
#include "base/files/text_file.h"

#include <fstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::HasSubstr;

absl::StatusOr<std::string> TextOf(const std::string& bytes) {
  const std::string path = testing::TempDir() + "/text_file_test.txt";
  std::ofstream(path, std::ios::binary) << bytes;
  return ReadTextFile(path, 1 << 20);
}

// `text` in wide characters of `width` bytes.
std::string Wide(const std::string& text, size_t width, bool big_endian) {
  std::string bytes;
  for (const char c : text) {
    std::string wide(width, '\0');
    wide[big_endian ? width - 1 : 0] = c;
    bytes += wide;
  }
  return bytes;
}

TEST(TextFile, AByteOrderMarkIsNoPartOfTheText) {
  EXPECT_EQ(*TextOf("\xEF\xBB\xBFname: 'a'"), "name: 'a'");
  EXPECT_EQ(*TextOf("\xEF\xBB\xBF"), "");
  EXPECT_EQ(*TextOf("name: 'a'\xEF\xBB\xBF"), "name: 'a'\xEF\xBB\xBF") << "only in front";
  EXPECT_EQ(*TextOf("\xEF\xBB"), "\xEF\xBB");
  EXPECT_EQ(*TextOf(""), "");
}

TEST(TextFile, WideCharactersAreRefusedWithTheRemedy) {
  const std::string text = "pos\tgood\n";
  const std::pair<std::string, std::string> encoded[] = {
      {"\xFF\xFE" + Wide(text, 2, false), "UTF-16"},
      {"\xFE\xFF" + Wide(text, 2, true), "UTF-16"},
      {Wide(text, 2, false), "UTF-16LE"},
      {Wide(text, 2, true), "UTF-16BE"},
      {std::string("\xFF\xFE\0\0", 4) + Wide(text, 4, false), "UTF-32"},
      {std::string("\0\0\xFE\xFF", 4) + Wide(text, 4, true), "UTF-32"},
      {Wide(text, 4, false), "UTF-32LE"},
      {Wide(text, 4, true), "UTF-32BE"}};
  for (const auto& [bytes, name] : encoded) {
    EXPECT_THAT(std::string(TextOf(bytes).status().message()),
                AllOf(HasSubstr("text_file_test.txt is " + name + ","),
                      HasSubstr("`iconv -f " + name + " -t UTF-8`")));
  }
}

// Text: U+65E5, U+672C, U+1F600, U+000A.
TEST(TextFile, Utf32WithoutAMarkIsRefusedInAnyScript) {
  EXPECT_THAT(std::string(TextOf(std::string("\xE5\x65\0\0\x2C\x67\0\0\0\xF6\x01\0\n\0\0\0", 16))
                              .status()
                              .message()),
              HasSubstr("is UTF-32LE"));
  EXPECT_THAT(std::string(TextOf(std::string("\0\0\x65\xE5\0\0\x67\x2C\0\x01\xF6\0\0\0\0\n", 16))
                              .status()
                              .message()),
              HasSubstr("is UTF-32BE"));
}

TEST(TextFile, ZerosInOtherPlacesAreBytes) {
  for (const std::string& bytes :
       {std::string("a\0b", 3), std::string("some text\0\0and more", 19), std::string("\0", 1),
        std::string(16, '\0'), std::string("a\0\0\0", 4), std::string("a\0\0\0bcd\0", 8)}) {
    EXPECT_EQ(*TextOf(bytes), bytes);
  }
}

TEST(TextFile, HiddenFilesAndCopiesOfEditorsAreKnownByName) {
  for (const char* name : {".DS_Store", "._a.txt", ".a.txt.swp", "a.txt~", "a.swp", "#a.txt#"}) {
    EXPECT_TRUE(IsHiddenOrEditorFile(name)) << name;
  }
  for (const char* name : {"a", "a.txt", "a~b", "#", "#a", "swp"}) {
    EXPECT_FALSE(IsHiddenOrEditorFile(name)) << name;
  }
}

}  // namespace
}  // namespace tug
