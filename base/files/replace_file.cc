// SPDX-License-Identifier: Apache-2.0
#include "base/files/replace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/files/file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

absl::Status ReplaceThrough(const std::string& path,
                            absl::FunctionRef<absl::Status(FileWriter&)> write,
                            absl::Status (FileWriter::*end)()) {
  const std::string partial = path + ".partial";
  const auto write_partial = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(partial));
    RETURN_IF_ERROR(write(file));
    return (file.*end)();
  };
  absl::Status written = write_partial();
  if (written.ok() && std::rename(partial.c_str(), path.c_str()) != 0) {
    written = FileError(errno, "write", path);
  }
  if (!written.ok()) ::unlink(partial.c_str());
  return written;
}

}  // namespace

absl::Status ReplaceFile(const std::string& path,
                         absl::FunctionRef<absl::Status(FileWriter&)> write) {
  return ReplaceThrough(path, write, &FileWriter::Finish);
}

absl::Status WriteFile(const std::string& path, std::string_view text) {
  const auto append = [&](FileWriter& file) { return file.Append(text); };
  return ReplaceThrough(path, append, &FileWriter::Close);
}

}  // namespace tug
