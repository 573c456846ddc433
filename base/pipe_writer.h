// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_PIPE_WRITER_H_
#define TUG_BASE_PIPE_WRITER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tug {

// Writes to a pipe, a terminal or a socket without ever blocking on its reader, which may be slow,
// stopped or gone. Does not change the mode of the open file, since other processes write to it
// too. Not thread-safe.
class PipeWriter {
 public:
  // `fd` is not owned. It may be redirected: each Flush writes to the file that it then refers to.
  explicit PipeWriter(int fd) : fd_(fd) {}

  // Queues text that must not be lost.
  void Append(absl::string_view bytes);
  // Queues text that may be lost. Returns false and drops `bytes` while more than kByteLimit are
  // queued.
  bool AppendIfRoom(absl::string_view bytes);
  // Queues `prefix` and `line` if there is room, else counts the line as dropped. The next line
  // that fits follows a line with the number of dropped ones.
  void AppendLineIfRoom(absl::string_view prefix, absl::string_view line);
  // Writes as much as the reader has room for. Does not interleave lines of up to PIPE_BUF bytes
  // with those of other processes.
  void Flush();
  // Returns when everything is written, the reader is gone, or the deadline has passed.
  void FlushUntil(absl::Time deadline);

  bool empty() const { return waiting_.empty(); }

  static constexpr size_t kByteLimit = size_t{1} << 20;

 private:
  const int fd_;
  bool broken_ = false;
  int left_out_ = 0;  // dropped lines
  std::string waiting_;
};

}  // namespace tug

#endif  // TUG_BASE_PIPE_WRITER_H_
