#ifndef TUG_CLI_PIPE_WRITER_H_
#define TUG_CLI_PIPE_WRITER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/file.h"

namespace tug {

// Bytes on their way into a pipe, or a terminal, whose reader may be slow or gone: whoever writes
// never waits for it, and nobody else who writes there is disturbed. REQUIRES: SIGPIPE is blocked
// or ignored. Not thread-safe.
class PipeWriter {
 public:
  // Not owned; a pipe or terminal is opened once more, so its reader sees no end before ours.
  explicit PipeWriter(int fd);

  // What must not be lost.
  void Append(absl::string_view bytes);
  // What may be: false, and nothing is taken, while more than kMostBytes wait.
  bool AppendIfRoom(absl::string_view bytes);
  // A line behind its prefix, if there is room. The first one after others that had none follows a
  // line that counts those.
  void AppendLineIfRoom(absl::string_view prefix, absl::string_view line);
  // Writes what goes at once. Lines of up to PIPE_BUF bytes stay whole beside those of others.
  void Flush();
  // Until all is written, the reader is gone, or the deadline.
  void FlushUntil(absl::Time deadline);

  bool empty() const { return waiting_.empty(); }

  static constexpr size_t kMostBytes = size_t{1} << 20;

 private:
  const FileDescriptor own_;  // without waiting
  const int fd_;
  bool broken_ = false;
  int left_out_ = 0;  // lines
  std::string waiting_;
};

}  // namespace tug

#endif  // TUG_CLI_PIPE_WRITER_H_
