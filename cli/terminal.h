#ifndef TUG_CLI_TERMINAL_H_
#define TUG_CLI_TERMINAL_H_

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/watch_view.h"

namespace tug {

// The terminal that stdout is, for a view that is drawn again and again where it stands: no screen
// of its own, so what was shown last stays. Keys come one by one and unseen, until the end of this
// object, where stdin is a terminal too and we are in its foreground. In the background (`&`,
// Ctrl-Z and `bg`) modes and keys are the shell's. Not thread-safe.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Whether stdout is one that can be drawn on (TERM is not "dumb").
  static bool IsThere();

  WatchSize size() const;
  // In place of what was drawn before, whatever the size was then.
  void Draw(const std::vector<WatchLine>& lines);
  // Waits for a key, at most so long; in the background, exactly so long.
  std::optional<char> ReadKey(absl::Duration timeout);

 private:
  // Sets the modes for keys, also again after a shell has set its own. False: keys are not ours.
  bool TakeKeys();

  const bool colours_;  // NO_COLOR is not set (no-color.org)
  std::optional<termios> before_;  // the modes that ours are in place of
  std::vector<size_t> drawn_;  // columns of each line
};

}  // namespace tug

#endif  // TUG_CLI_TERMINAL_H_
