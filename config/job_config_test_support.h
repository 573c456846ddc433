// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_JOB_CONFIG_TEST_SUPPORT_H_
#define TUG_CONFIG_JOB_CONFIG_TEST_SUPPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "config/job_config.h"
#include "gtest/gtest.h"

namespace tug {

inline absl::StatusOr<JobConfig> Parse(const std::string& text,
                                       std::vector<std::string> overrides = {}) {
  return ParseJobConfig(text, "a.textproto", overrides);
}

inline JobConfig Valid() {
  auto config = Parse("data { path: 'text' }");
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

inline std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

inline std::string ErrorWith(std::vector<std::string> overrides) {
  return ErrorOf(Parse("data { path: 'text' }", std::move(overrides)).status());
}

}  // namespace tug

#endif  // TUG_CONFIG_JOB_CONFIG_TEST_SUPPORT_H_
