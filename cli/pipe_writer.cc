#include "cli/pipe_writer.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/time/clock.h"

namespace tug {

void PipeWriter::Append(absl::string_view bytes) {
  if (!broken_) waiting_.append(bytes.data(), bytes.size());
}

bool PipeWriter::AppendIfRoom(absl::string_view bytes) {
  if (waiting_.size() > kMostBytes) return false;
  Append(bytes);
  return true;
}

void PipeWriter::Flush() {
  size_t written = 0;
  while (written < waiting_.size()) {
    // A pipe with room for less than PIPE_BUF is not writable.
    pollfd writable{fd_, POLLOUT, 0};
    if (poll(&writable, 1, 0) <= 0) break;
    absl::string_view part = absl::string_view(waiting_).substr(written, PIPE_BUF);
    const size_t line_end = part.rfind('\n');
    if (line_end != absl::string_view::npos) part = part.substr(0, line_end + 1);
    const ssize_t n = write(fd_, part.data(), part.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (n < 0) {
      broken_ = true;
      waiting_.clear();
      return;
    }
    written += static_cast<size_t>(n);
  }
  waiting_.erase(0, written);
}

void PipeWriter::FlushUntil(absl::Time deadline) {
  for (Flush(); !empty() && absl::Now() < deadline; Flush()) {
    pollfd writable{fd_, POLLOUT, 0};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now()) + 1;
    poll(&writable, 1, static_cast<int>(std::clamp<int64_t>(left_ms, 1, 1000)));
  }
}

}  // namespace tug
