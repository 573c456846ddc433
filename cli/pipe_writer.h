#ifndef TUG_CLI_PIPE_WRITER_H_
#define TUG_CLI_PIPE_WRITER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tug {

// Bytes on their way into a pipe, or a terminal, whose reader may be slow or gone: whoever writes
// never waits for it. REQUIRES: SIGPIPE is blocked or ignored. Not thread-safe.
class PipeWriter {
 public:
  // Not owned.
  explicit PipeWriter(int fd) : fd_(fd) {}

  // What must not be lost.
  void Append(absl::string_view bytes);
  // What may be: false, and nothing is taken, while more than kMostBytes wait.
  bool AppendIfRoom(absl::string_view bytes);
  // Writes what goes at once. Lines of up to PIPE_BUF bytes stay whole beside those of others.
  void Flush();
  // Until all is written, the reader is gone, or the deadline.
  void FlushUntil(absl::Time deadline);

  bool empty() const { return waiting_.empty(); }

  static constexpr size_t kMostBytes = size_t{1} << 20;

 private:
  const int fd_;
  bool broken_ = false;
  std::string waiting_;
};

}  // namespace tug

#endif  // TUG_CLI_PIPE_WRITER_H_
