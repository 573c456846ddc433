#ifndef TUG_CLI_PIPE_H_
#define TUG_CLI_PIPE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace tug {

struct Pipe {
  FileDescriptor read_end, write_end;
};

// Closed on exec. Errors: as FileError.
absl::StatusOr<Pipe> NewPipe();

// A file that is nowhere but in memory, open at its begin, for who has its descriptor or may read
// our user's. Closed on exec. Errors: as FileError.
absl::StatusOr<FileDescriptor> InMemory(const std::string& text);

// The next bytes, without waiting: "" where there are none yet, no value at the end.
std::optional<std::string> ReadWhatIsThere(int fd);

// Cuts bytes into lines.
class LineReader {
 public:
  // Of what comes; a line that is longer than kMostBytes is cut there.
  template <typename Callback>
  void Read(absl::string_view bytes, Callback on_line) {
    for (const char c : bytes) {
      if (c != '\n') line_ += c;
      if (c == '\n' || line_.size() >= kMostBytes) Finish(on_line, c == '\n');
    }
  }
  // At the end of the input: a line that nothing has ended.
  template <typename Callback>
  void Finish(Callback on_line, bool ended = false) {
    if (!line_.empty() || ended) on_line(line_);
    line_.clear();
  }

  static constexpr size_t kMostBytes = 3800;  // with a prefix, less than PIPE_BUF

 private:
  std::string line_;
};

// Passes the lines that are there to `on_line`; at the end closes `fd`. False: nothing more is
// there.
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

#endif  // TUG_CLI_PIPE_H_
