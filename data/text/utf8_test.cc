// SPDX-License-Identifier: Apache-2.0
#include "data/text/utf8.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace tug {
namespace {

using State = CodePoint::State;

bool IsSurrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

TEST(Utf8, RoundTripsEveryCodePoint) {
  for (char32_t c = 0; c <= kMaxCodePoint; ++c) {
    if (IsSurrogate(c)) continue;
    std::string text;
    AppendUtf8(c, text);
    const CodePoint point = DecodeUtf8(text + "x");
    ASSERT_EQ(point.state, State::kValid) << NameOfCodePoint(c);
    ASSERT_EQ(point.value, c);
    ASSERT_EQ(point.size_bytes, text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(DecodeUtf8(text.substr(0, cut)).state, State::kIncomplete) << NameOfCodePoint(c);
    }
  }
}

TEST(Utf8, RefusesOverlongSurrogatesTooLargeAndStrayBytes) {
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xED\xBF\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xC3(", "\xE2\x82(", "\xF0\x9F\x98("}) {
    EXPECT_EQ(DecodeUtf8(bad).state, State::kInvalid) << bad;
  }
}

// Random byte sequences: whatever decodes must encode to the same bytes.
TEST(Utf8, FuzzDecodesOnlyWhatEncodesToTheSameBytes) {
  const uint32_t seed = 20240117;
  RecordProperty("seed", seed);
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 300000; ++i) {
    std::string text;
    const size_t size = 1 + random() % 6;
    for (size_t j = 0; j < size; ++j) {
      const uint32_t r = random();
      text.push_back(static_cast<char>(r % 3 == 0 ? r >> 8 : 0x80 | (r >> 8)));
    }
    const CodePoint point = DecodeUtf8(text);
    if (point.state == State::kValid) {
      std::string again;
      ASSERT_FALSE(IsSurrogate(point.value));
      ASSERT_LE(point.value, kMaxCodePoint);
      AppendUtf8(point.value, again);
      ASSERT_EQ(again, text.substr(0, point.size_bytes));
    } else if (point.state == State::kIncomplete) {
      ASSERT_LT(text.size(), 4u);
    }
    ASSERT_LE(text.size() - WholeCodePoints(text), 3u);
  }
}

TEST(Utf8, TellsWholeTextsFromOthers) {
  for (const char* text : {"", "ab", "a\xC3\xA9", "\xF0\x9F\x98\x80"})
    EXPECT_TRUE(IsUtf8(text)) << text;
  for (const char* text : {"a\xC3", "\x80", "\xC0\x80", "a\xED\xA0\x80z"})
    EXPECT_FALSE(IsUtf8(text));
}

TEST(Utf8, CutsBeforeAnIncompleteCodePointOnly) {
  EXPECT_EQ(WholeCodePoints(""), 0u);
  EXPECT_EQ(WholeCodePoints("ab"), 2u);
  EXPECT_EQ(WholeCodePoints("a\xC3\xA9"), 3u);
  EXPECT_EQ(WholeCodePoints("a\xC3"), 1u);
  EXPECT_EQ(WholeCodePoints("a\xF0\x9F\x98"), 1u);
  EXPECT_EQ(WholeCodePoints("a\xF0\x9F\x98\x80"), 5u);
  EXPECT_EQ(WholeCodePoints("\x80\x80\x80\x80"), 4u);
}

TEST(Utf8, NamesCodePoints) {
  EXPECT_EQ(NameOfCodePoint(U'\n'), "U+000A");
  EXPECT_EQ(NameOfCodePoint(U'é'), "U+00E9 (é)");
  EXPECT_EQ(NameOfCodePoint(U'😀'), "U+1F600 (😀)");
}

}  // namespace
}  // namespace tug
