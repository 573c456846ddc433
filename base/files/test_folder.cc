// SPDX-License-Identifier: Apache-2.0
#include "base/files/test_folder.h"

#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "gtest/gtest.h"

namespace tug {

TestFolder::TestFolder() : path_(testing::TempDir() + "/test_XXXXXX") {
  TUG_CHECK(::mkdtemp(path_.data()) != nullptr) << path_;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tug
