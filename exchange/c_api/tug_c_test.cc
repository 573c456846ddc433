// SPDX-License-Identifier: Apache-2.0
// Calls that need no job. tests/c_api_test.cc has those that need one.

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <thread>

#include "exchange/c_api/tug.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Defined in tug_h_c99.c and tug_h_cxx98.cc.
extern "C" int tug_h_in_c99(void);
int tug_h_in_cxx98();

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TugC, SaysThatTheAddressIsNone) {
  tug_context* context = nullptr;
  EXPECT_EQ(tug_init("nowhere", &context), TUG_INVALID_ARGUMENT);
  ASSERT_NE(context, nullptr);
  EXPECT_THAT(tug_last_error(context),
              AllOf(HasSubstr("'nowhere' is not an address"), Not(HasSubstr("\n"))));
  // The context only holds the error message.
  uint32_t block = 0;
  EXPECT_EQ(tug_declare(context, "a", 1, 0, 0, 0, &block), TUG_REFUSED);
  EXPECT_THAT(tug_last_error(context), HasSubstr("tug_init failed"));
  EXPECT_EQ(tug_shutdown(context), TUG_REFUSED);
  tug_free(context);
}

TEST(TugC, SaysThatTheCoordinatorIsNotThere) {
  tug_context* context = nullptr;
  EXPECT_EQ(tug_init("127.0.0.1:1", &context), TUG_UNREACHABLE);
  EXPECT_THAT(tug_last_error(context),
              AllOf(HasSubstr("cannot reach the coordinator"), HasSubstr("if it is not running"),
                    Not(HasSubstr("\n"))));
  tug_free(context);
}

TEST(TugC, KeepsTheMessagesOfThreadsApart) {
  tug_context* context = nullptr;
  EXPECT_EQ(tug_init(nullptr, &context), TUG_INVALID_ARGUMENT);
  const char* mine = tug_last_error(context);
  EXPECT_THAT(mine, HasSubstr("coordinator is NULL"));
  std::thread other([&] {
    EXPECT_STREQ(tug_last_error(context), "");
    EXPECT_EQ(tug_start(context), TUG_REFUSED);
    EXPECT_THAT(tug_last_error(context), HasSubstr("tug_init failed"));
  });
  other.join();
  EXPECT_THAT(mine, HasSubstr("coordinator is NULL"));
  tug_free(context);
}

TEST(TugC, HasAHeaderForC99AndForTheOldestCxx) {
  EXPECT_TRUE(tug_h_in_c99());
  EXPECT_TRUE(tug_h_in_cxx98());
}

// Names matched by `pattern`'s group in a file.
std::set<std::string> NamesIn(const char* path, const char* pattern) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::regex names(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator name(text.begin(), text.end(), names), end; name != end; ++name) {
    found.insert((*name)[1]);
  }
  return found;
}

TEST(TugC, TheLibraryHasTheNamesOfTheHeader) {
  const std::set<std::string> declared =
      NamesIn("exchange/c_api/tug.h", "\n(?:tug_status|void|const char\\*) (tug_[a-z_]+)\\(");
  EXPECT_EQ(declared, NamesIn("exchange/c_api/tug.lds", "\n +(tug_[a-z_]+);"));
  EXPECT_GE(declared.size(), 17u);
}

TEST(TugC, TellsTheVersionOfItsHeader) {
  EXPECT_EQ(tug_version(), std::to_string(TUG_VERSION_MAJOR) + "." +
                               std::to_string(TUG_VERSION_MINOR) + "." +
                               std::to_string(TUG_VERSION_PATCH));
}

TEST(TugC, NeverFollowsANullContext) {
  EXPECT_EQ(tug_init("127.0.0.1:1", nullptr), TUG_INVALID_ARGUMENT);
  EXPECT_EQ(tug_start(nullptr), TUG_INVALID_ARGUMENT);
  EXPECT_EQ(tug_begin_step(nullptr, nullptr), TUG_INVALID_ARGUMENT);
  EXPECT_EQ(tug_wait(nullptr, 1), TUG_INVALID_ARGUMENT);
  EXPECT_THAT(tug_last_error(nullptr), HasSubstr("NULL"));
  tug_free(nullptr);
}

}  // namespace
