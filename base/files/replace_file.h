// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_REPLACE_FILE_H_
#define TUG_BASE_FILES_REPLACE_FILE_H_

// Creates or replaces a file through `path`.partial, so that readers find the old contents or all
// of the new. Errors leave the old file: those of FileError, and of `write`. Two processes must not
// replace one file at a time.

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/files/file_writer.h"

namespace tug {

// The contents are those that `write` appends. Durable across a power failure after SyncFolder.
absl::Status ReplaceFile(const std::string& path,
                         absl::FunctionRef<absl::Status(FileWriter&)> write);

// Not durable: for files that a user or another process reads.
absl::Status WriteFile(const std::string& path, std::string_view text);

}  // namespace tug

#endif  // TUG_BASE_FILES_REPLACE_FILE_H_
