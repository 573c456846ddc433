// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_WATCH_TERMINAL_H_
#define TUG_CLI_WATCH_TERMINAL_H_

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/watch/watch_view.h"

namespace tug {

// Stdout's terminal, for a view that is redrawn in place: it uses the normal screen, so the last
// view stays. If stdin is a terminal too and this process is in its foreground, keys arrive one by
// one without echo during the lifetime of this object. In the background (`&`, Ctrl-Z and `bg`)
// modes and keys belong to the shell. Not thread-safe.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Whether stdout is a terminal that supports drawing (TERM is not "dumb").
  static bool IsThere();

  WatchSize size() const;
  // Replaces the previous drawing, whatever the terminal's size was then.
  void Draw(const std::vector<WatchLine>& lines);
  // Waits for a key, up to `timeout`; in the background always for `timeout`.
  std::optional<char> ReadKey(absl::Duration timeout);

 private:
  // Sets the modes for keys, again if a shell has reset them. False: keys belong to the shell.
  bool TakeKeys();

  const bool colours_;             // NO_COLOR is not set (no-color.org)
  std::optional<termios> before_;  // modes to restore
  std::vector<size_t> drawn_;      // number of columns of each drawn line
};

}  // namespace tug

#endif  // TUG_CLI_WATCH_TERMINAL_H_
