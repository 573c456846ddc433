// SPDX-License-Identifier: Apache-2.0
#include "coordinator/torn_line.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/files/file.h"

namespace tug {

absl::Status CutTornLine(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  uint64_t whole_bytes = 0;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line) && !file.eof();) whole_bytes += line.size() + 1;
  if (!file.eof()) return FileError(errno == 0 ? EIO : errno, "read", path);
  const uint64_t size_bytes = std::filesystem::file_size(path, error);
  if (!error && size_bytes > whole_bytes) std::filesystem::resize_file(path, whole_bytes, error);
  if (error) return FileError(error.value(), "truncate", path);
  return absl::OkStatus();
}

}  // namespace tug
