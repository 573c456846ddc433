#ifndef TUG_BASE_PIPE_WRITER_H_
#define TUG_BASE_PIPE_WRITER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tug {

// Writes to a pipe, a terminal or a socket without ever blocking on its reader, which may be slow,
// stopped or gone. Leaves the mode of the open file as it is, since other processes write to it
// too. Not thread-safe.
class PipeWriter {
 public:
  // `fd` is not owned. It may be redirected: each Flush writes to the file that it then refers to.
  explicit PipeWriter(int fd) : fd_(fd) {}

  // For text that must not be lost.
  void Append(absl::string_view bytes);
  // For text that may be lost. Returns false and drops `bytes` while more than kMostBytes wait.
  bool AppendIfRoom(absl::string_view bytes);
  // Appends a line behind its prefix if there is room, and otherwise counts it. The next line that
  // finds room follows one that says how many were left out.
  void AppendLineIfRoom(absl::string_view prefix, absl::string_view line);
  // Writes as much as the reader has room for. Lines of up to PIPE_BUF bytes are not mixed with
  // those of other processes.
  void Flush();
  // Returns when all is written, the reader is gone, or the deadline has passed.
  void FlushUntil(absl::Time deadline);

  bool empty() const { return waiting_.empty(); }

  static constexpr size_t kMostBytes = size_t{1} << 20;

 private:
  const int fd_;
  bool broken_ = false;
  int left_out_ = 0;  // lines
  std::string waiting_;
};

}  // namespace tug

#endif  // TUG_BASE_PIPE_WRITER_H_
