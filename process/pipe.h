// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_PIPE_H_
#define TUG_PROCESS_PIPE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file.h"

namespace tug {

struct Pipe {
  FileDescriptor read_end, write_end;
};

// Both ends are closed on exec. Errors: as FileError.
absl::StatusOr<Pipe> NewPipe();

// An anonymous file in memory with this content, open at its beginning; accessible through the
// descriptor, and to processes of our user. Closed on exec. Errors: as FileError.
absl::StatusOr<FileDescriptor> InMemory(const std::string& text);

// Reads the available bytes without waiting: "" if there are none yet, no value at the end.
std::optional<std::string> ReadWhatIsThere(int fd);

// Cuts bytes into lines.
class LineReader {
 public:
  // Calls `on_line` for each complete line; cuts a line after kByteLimit.
  template <typename Callback>
  void Read(absl::string_view bytes, Callback on_line) {
    for (const char c : bytes) {
      if (c != '\n') line_ += c;
      if (c == '\n' || line_.size() >= kByteLimit) Finish(on_line, c == '\n');
    }
  }
  // Call at the end of the input: passes on an unterminated last line.
  template <typename Callback>
  void Finish(Callback on_line, bool ended = false) {
    if (!line_.empty() || ended) on_line(line_);
    line_.clear();
  }

  static constexpr size_t kByteLimit = 3800;  // with a prefix, less than PIPE_BUF

 private:
  std::string line_;
};

// Passes the available lines to `on_line`; closes `fd` at the end of the input. False: nothing was
// available.
template <typename Callback>
bool PassLines(FileDescriptor& fd, LineReader& lines, Callback on_line) {
  if (!fd.valid()) return false;
  const std::optional<std::string> bytes = ReadWhatIsThere(fd.get());
  if (!bytes.has_value()) {
    lines.Finish(on_line);
    fd = FileDescriptor();
    return false;
  }
  lines.Read(*bytes, on_line);
  return !bytes->empty();
}

}  // namespace tug

#endif  // TUG_PROCESS_PIPE_H_
