// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_TEST_FOLDER_H_
#define TUG_BASE_FILES_TEST_FOLDER_H_

#include <string>

namespace tug {

// For tests: a temporary folder under TEST_TMPDIR, deleted with its contents by the destructor.
class TestFolder {
 public:
  TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tug

#endif  // TUG_BASE_FILES_TEST_FOLDER_H_
