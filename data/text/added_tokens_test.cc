// SPDX-License-Identifier: Apache-2.0
#include "data/text/added_tokens.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

std::string SplitText(const AddedTokens& tokens, std::string_view text) {
  std::string parts;
  tokens.Split(
      text, [&](std::string_view part) { parts.append("'").append(part).append("'"); },
      [&](int32_t token, std::string_view /*text*/) { absl::StrAppend(&parts, token); });
  return parts;
}

TEST(AddedTokens, TheLeftmostAndOfThoseTheLongestIsFound) {
  AddedTokens tokens;
  EXPECT_EQ(SplitText(tokens, "text"), "'text'");
  EXPECT_EQ(SplitText(tokens, ""), "");
  tokens.Add("ab", 1, false);
  tokens.Add("abc", 2, false);
  tokens.Add("bcd", 3, false);
  EXPECT_EQ(SplitText(tokens, "xabcd ab bcdab"), "'x'2'd '1' '31");
}

TEST(AddedTokens, NormalizedOnesAreFoundBetweenTheOthers) {
  AddedTokens tokens;
  tokens.Add("x<a>y", 1, true);
  tokens.Add("<a>", 2, false);
  tokens.Add("y y", 3, true);
  EXPECT_EQ(SplitText(tokens, "x<a>y y"), "'x'23");
}

TEST(AddedTokens, MayReachOverAPlaceAlsoWhenTheTextEndsTooEarly) {
  AddedTokens tokens;
  EXPECT_FALSE(tokens.MayReachOver("a b", 1));
  tokens.Add("my pad", 1, true);
  EXPECT_TRUE(tokens.MayReachOver("a my pad", 4));
  EXPECT_TRUE(tokens.MayReachOver("a my", 3));
  EXPECT_FALSE(tokens.MayReachOver("a my", 2));
  EXPECT_FALSE(tokens.MayReachOver("a my dad", 4));
}

}  // namespace
}  // namespace tug
