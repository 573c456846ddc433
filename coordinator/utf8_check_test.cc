// SPDX-License-Identifier: Apache-2.0
#include "coordinator/utf8_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

using ::testing::StartsWith;

TEST(Utf8Check, NamesTheTextInAscii) {
  EXPECT_TRUE(CheckUtf8("the run folder", "/runs/caf\xC3\xA9 1").ok());
  const absl::Status refused = CheckUtf8("the run folder", "/runs/caf\xE9");
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              StartsWith("the run folder /runs/caf\\xe9 is not UTF-8"));
}

TEST(Utf8Check, NamesTheFieldOfAConfiguration) {
  JobConfig config;
  config.set_name("caf\xC3\xA9");
  config.mutable_data()->set_path("/text");
  config.mutable_data()->set_resolved_tokenizer("bytes \xFF");
  config.mutable_data()->add_resolved_labels("good");
  EXPECT_TRUE(CheckUtf8(config).ok()) << CheckUtf8(config);
  config.mutable_data()->add_resolved_labels("\xFF");
  EXPECT_THAT(std::string(CheckUtf8(config).message()), StartsWith("data.resolved_labels = \\xff"));
  config.mutable_data()->set_path("/te\xE9xt");
  EXPECT_THAT(std::string(CheckUtf8(config).message()), StartsWith("data.path = /te\\xe9xt is"));
}

}  // namespace
}  // namespace tug
