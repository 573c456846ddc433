// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/well_formed.h"

#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {

void ExpectWellFormed(const std::string& page) {
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    if (page.compare(at, 2, "<!") == 0) continue;
    const size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const bool closes = page[at + 1] == '/';
    const size_t begin = at + (closes ? 2 : 1);
    const std::string name = page.substr(begin, page.find_first_of(" \n/>", begin) - begin);
    if (closes) {
      ASSERT_FALSE(open.empty()) << name;
      ASSERT_EQ(open.back(), name) << page.substr(at, 80);
      open.pop_back();
    } else if (page[end - 1] != '/') {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty()) << open.back();
  const std::string plain =
      absl::StrReplaceAll(page, {{"&lt;", ""}, {"&gt;", ""}, {"&amp;", ""}, {"&quot;", ""}});
  EXPECT_THAT(plain, ::testing::Not(::testing::HasSubstr("&")));
}

}  // namespace tug
