// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/csv_table.h"

#include <cerrno>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "coordinator/torn_line.h"

namespace tug {
namespace {

// First and last line of a file that consists of complete lines.
struct Found {
  std::string header;
  std::string last;  // empty: no rows
};

Found Look(const std::string& path) {
  Found found;
  std::ifstream file(path, std::ios::binary);
  std::getline(file, found.header);
  for (std::string line; std::getline(file, line);) found.last = line;
  return found;
}

}  // namespace

absl::StatusOr<CsvTable> CsvTable::Open(const std::string& path, const std::string& header,
                                        bool taken_up) {
  RETURN_IF_ERROR(CutTornLine(path));
  const Found found = Look(path);
  if (!found.header.empty() && found.header != header) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        " has different columns from those this version of tug writes: move the file elsewhere"));
  }
  Key last{0, 0};
  if (taken_up && !found.last.empty()) {
    const std::vector<std::string> columns = absl::StrSplit(found.last, absl::MaxSplits(',', 2));
    if (columns.size() < 2 || !absl::SimpleAtoi(columns[0], &last.first) ||
        !absl::SimpleAtoi(columns[1], &last.second)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " does not end with a row of this job: move the file elsewhere"));
    }
  }
  FileStream file = OpenStream(path);
  if (file == nullptr) return FileError(errno, "write", path);
  CsvTable table(path, std::move(file), last);
  if (found.header.empty()) table.Append(header);
  if (!table.status_.ok()) return table.status_;
  return table;
}

void CsvTable::Row(uint32_t timeline, uint64_t step, const std::string& values) {
  if (Key{timeline, step} <= last_) return;
  Append(absl::StrCat(timeline, ",", step, ",", values));
}

void CsvTable::Append(const std::string& line) {
  if (!status_.ok()) return;
  const std::string text = line + "\n";
  if (std::fputs(text.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) {
    status_ = FileError(errno, "write", path_);
  }
}

}  // namespace tug
