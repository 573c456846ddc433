#include "cli/pipe_writer.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tug {
namespace {

constexpr absl::Duration kRetryInterval = absl::Milliseconds(10);

// What is writable may have less room than we write: a terminal always, a pipe when others write
// there, too. Writing without waiting is a property of an open file, which others share.
FileDescriptor OpenedAnew(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0 || (!S_ISFIFO(file.st_mode) && isatty(fd) == 0)) return {};
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  return FileDescriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

PipeWriter::PipeWriter(int fd) : own_(OpenedAnew(fd)), fd_(own_.valid() ? own_.get() : fd) {}

void PipeWriter::Append(absl::string_view bytes) {
  if (!broken_) waiting_.append(bytes.data(), bytes.size());
}

bool PipeWriter::AppendIfRoom(absl::string_view bytes) {
  if (waiting_.size() > kMostBytes) return false;
  Append(bytes);
  return true;
}

void PipeWriter::AppendLineIfRoom(absl::string_view prefix, absl::string_view line) {
  std::string lines = absl::StrCat(prefix, line, "\n");
  if (left_out_ > 0) lines = absl::StrCat(prefix, left_out_, " lines are left out\n", lines);
  left_out_ = AppendIfRoom(lines) ? 0 : left_out_ + 1;
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
  size_t before = 0;  // what was left
  for (Flush(); !empty() && absl::Now() < deadline; Flush()) {
    // A terminal may be writable, and take nothing all the same.
    if (waiting_.size() == before) absl::SleepFor(kRetryInterval);
    before = waiting_.size();
    pollfd writable{fd_, POLLOUT, 0};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now()) + 1;
    poll(&writable, 1, static_cast<int>(std::clamp<int64_t>(left_ms, 1, 1000)));
  }
}

}  // namespace tug
