// SPDX-License-Identifier: Apache-2.0
#include "base/pipe_writer.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file_descriptor.h"
#include "base/time_source.h"

namespace tug {
namespace {

constexpr absl::Duration kRetryInterval = absl::Milliseconds(10);

// Blocks SIGPIPE for this thread during its lifetime, so that writing to a pipe without a reader
// fails with EPIPE. A program that links libtug may not ignore the signal.
class NoBrokenPipeSignal {
 public:
  NoBrokenPipeSignal() {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe_, &mask_before_);
    sigset_t pending;
    sigpending(&pending);
    pending_before_ = sigismember(&pending, SIGPIPE) == 1;
  }
  ~NoBrokenPipeSignal() {
    const timespec now{};
    if (!pending_before_) sigtimedwait(&broken_pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  NoBrokenPipeSignal(const NoBrokenPipeSignal&) = delete;
  NoBrokenPipeSignal& operator=(const NoBrokenPipeSignal&) = delete;

 private:
  sigset_t broken_pipe_;
  sigset_t mask_before_;
  bool pending_before_ = false;
};

// Writes to an open file without ever blocking. A descriptor that poll() reports as writable may
// have less room than the write needs: a terminal always, a pipe if others write to it too.
// O_NONBLOCK belongs to the open file, which other processes share, so pipes and terminals are
// opened again, and sockets use send() with MSG_DONTWAIT.
class Unwaiting {
 public:
  explicit Unwaiting(int fd) : shared_(fd) {
    struct stat file;
    if (fstat(fd, &file) != 0) return;
    socket_ = S_ISSOCK(file.st_mode);
    if (!S_ISFIFO(file.st_mode) && isatty(fd) == 0) return;
    const std::string path = absl::StrCat("/proc/self/fd/", fd);
    own_ = FileDescriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }

  bool Writable() const {
    pollfd writable{fd(), POLLOUT, 0};
    return poll(&writable, 1, 0) > 0;
  }
  ssize_t Write(absl::string_view bytes) const {
    if (socket_) return send(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return write(fd(), bytes.data(), bytes.size());
  }

 private:
  int fd() const { return own_.valid() ? own_.get() : shared_; }

  const int shared_;
  bool socket_ = false;
  FileDescriptor own_;
};

}  // namespace

void PipeWriter::Append(absl::string_view bytes) {
  if (!broken_) waiting_.append(bytes.data(), bytes.size());
}

bool PipeWriter::AppendIfRoom(absl::string_view bytes) {
  if (waiting_.size() > kByteLimit) return false;
  Append(bytes);
  return true;
}

void PipeWriter::AppendLineIfRoom(absl::string_view prefix, absl::string_view line) {
  std::string lines = absl::StrCat(prefix, line, "\n");
  if (left_out_ > 0) lines = absl::StrCat(prefix, left_out_, " lines were dropped\n", lines);
  left_out_ = AppendIfRoom(lines) ? 0 : left_out_ + 1;
}

void PipeWriter::Flush() {
  if (waiting_.empty()) return;
  const NoBrokenPipeSignal no_signal;
  const Unwaiting out(fd_);
  size_t written = 0;
  // poll() does not report a pipe with room for less than PIPE_BUF as writable.
  while (written < waiting_.size() && out.Writable()) {
    absl::string_view part = absl::string_view(waiting_).substr(written, PIPE_BUF);
    const size_t line_end = part.rfind('\n');
    if (line_end != absl::string_view::npos) part = part.substr(0, line_end + 1);
    const ssize_t n = out.Write(part);
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
  size_t before = 0;  // bytes left by the previous Flush
  for (Flush(); !empty() && SteadyNow() < deadline; Flush()) {
    // A terminal may report itself writable and still accept nothing.
    if (waiting_.size() == before) absl::SleepFor(kRetryInterval);
    before = waiting_.size();
    pollfd writable{fd_, POLLOUT, 0};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - SteadyNow()) + 1;
    poll(&writable, 1, static_cast<int>(std::clamp<int64_t>(left_ms, 1, 1000)));
  }
}

}  // namespace tug
