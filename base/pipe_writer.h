#ifndef TUG_BASE_PIPE_WRITER_H_
#define TUG_BASE_PIPE_WRITER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tug {

// Bytes on their way into a pipe, a terminal or a socket whose reader may be slow, stopped or gone.
// The writer never waits for the reader, and other processes that write there are not disturbed.
// Not thread-safe.
class PipeWriter {
 public:
  // `fd` is not owned. Whatever it is at the time of a Flush is written to.
  explicit PipeWriter(int fd) : fd_(fd) {}

  // For text that must not be lost.
  void Append(absl::string_view bytes);
  // For text that may be lost. False, and nothing is taken, while more than kMostBytes wait.
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
