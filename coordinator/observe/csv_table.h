// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_CSV_TABLE_H_
#define TUG_COORDINATOR_OBSERVE_CSV_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file.h"

namespace tug {

// A table for users and spreadsheets (RFC 4180, but lines end with a newline): a header, then one
// row per step or evaluation of the job. The first two columns are timeline and step. A resumed run
// appends; a repeated step has two rows, with different timelines. Each row is written at once, not
// buffered. Not thread-safe.
class CsvTable {
 public:
  // Opens for appending and cuts off an incomplete last row. `taken_up`: a process that died has
  // written rows of the same job, which Row skips. Errors: those of the file system;
  // FAILED_PRECONDITION if the file has other columns, or does not end with a row of a job.
  static absl::StatusOr<CsvTable> Open(const std::string& path, const std::string& header,
                                       bool taken_up);

  // `values`: the other columns. With `taken_up`: no effect if this row or a later one was already
  // there.
  void Row(uint32_t timeline, uint64_t step, const std::string& values);

  // The first error, with its remedy; nothing is written after it.
  const absl::Status& status() const { return status_; }

 private:
  using Key = std::pair<uint32_t, uint64_t>;  // timeline, step

  CsvTable(std::string path, FileStream file, Key last)
      : path_(std::move(path)), file_(std::move(file)), last_(last) {}
  void Append(const std::string& line);

  std::string path_;
  FileStream file_;
  Key last_;  // newest row found by Open
  absl::Status status_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_CSV_TABLE_H_
