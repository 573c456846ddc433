// SPDX-License-Identifier: Apache-2.0
#include "process/number_options.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

// One number of each kind, in a nested subcommand.
class NumberOptionsTest : public ::testing::Test {
 protected:
  NumberOptionsTest() {
    CLI::App* pull = app_.add_subcommand("pull", "")->add_subcommand("ship", "");
    pull->add_option("--real", real_, "")->check(CLI::Range(0.0, 100.0));
    pull->add_option("--maybe-real", maybe_real_, "");
    pull->add_option("--wide", wide_, "");
    pull->add_option("--signed", signed_, "");
    pull->add_option("--list", list_, "")->delimiter(',');
    pull->add_option("--name", name_, "");
    CheckNumbers(app_);
  }

  bool Accepts(const std::string& option, const std::string& value) {
    try {
      app_.parse({absl::StrCat(option, "=", value), "ship", "pull"});  // in reverse order
      return true;
    } catch (const CLI::ParseError&) {
      return false;
    }
  }

  CLI::App app_{"", "boat"};
  double real_ = 0;
  std::optional<double> maybe_real_;
  uint64_t wide_ = 0;
  int signed_ = 0;
  std::vector<uint32_t> list_;
  std::string name_;
};

TEST_F(NumberOptionsTest, RefuseWhatIsNoFiniteNumberFromZeroOn) {
  for (const std::string option : {"--real", "--maybe-real", "--wide", "--signed", "--list"}) {
    for (const std::string value : {"nan", "inf", "-inf", "-1", "1e999", "", "word"}) {
      EXPECT_FALSE(Accepts(option, value)) << option << "=" << value;
    }
    EXPECT_TRUE(Accepts(option, "7")) << option;
  }
  EXPECT_FALSE(Accepts("--wide", "18446744073709551616"));
  EXPECT_FALSE(Accepts("--list", "1,-1"));
}

TEST_F(NumberOptionsTest, LeaveTextAndWholeRangesAlone) {
  EXPECT_TRUE(Accepts("--name", "nan"));
  EXPECT_EQ(name_, "nan");
  EXPECT_TRUE(Accepts("--wide", "18446744073709551615"));
  EXPECT_EQ(wide_, std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(Accepts("--list", "1,2"));
  EXPECT_EQ(list_, (std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(Accepts("--maybe-real", "0.5"));
  EXPECT_EQ(maybe_real_, 0.5);
}

}  // namespace
}  // namespace tug
