#ifndef TUG_COORDINATOR_CSV_TABLE_H_
#define TUG_COORDINATOR_CSV_TABLE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

// A file of rows for people and spreadsheets (RFC 4180, lines ended by a newline): one header, then
// a row a step or evaluation of the job. The first two columns are timeline and step. A run that is
// resumed appends; a step that was run again stands in it twice, with different timelines. Each row
// is given to the system at once. Not thread-safe.
class CsvTable {
 public:
  // Opens for appending. A last row that is not whole is cut off. `taken_up`: a process that died
  // has written rows of the same job, which are given once more (Row). Errors: those of the file
  // system; FAILED_PRECONDITION, where the file has other columns.
  static absl::StatusOr<CsvTable> Open(const std::string& path, const std::string& header,
                                       bool taken_up);

  // `values`: of the other columns. Taken up: nothing, if the row, or a later one, is there.
  void Row(uint32_t timeline, uint64_t step, const std::string& values);

  // The first error, with its remedy; from then on nothing is written.
  const absl::Status& status() const { return status_; }

 private:
  using Key = std::pair<uint32_t, uint64_t>;  // timeline, step
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  CsvTable(std::string path, std::FILE* file, Key last)
      : path_(std::move(path)), file_(file), last_(last) {}
  void Append(const std::string& line);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  Key last_;  // rows up to this one are there
  absl::Status status_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_CSV_TABLE_H_
