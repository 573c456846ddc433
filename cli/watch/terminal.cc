// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

const char* EnvironmentOr(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// Whether this process is in the foreground of stdin's terminal. A terminal that does not control
// our session has no background.
bool IsForeground() {
  if (isatty(STDIN_FILENO) == 0) return false;
  const pid_t foreground = tcgetpgrp(STDIN_FILENO);
  return foreground == getpgrp() || (foreground < 0 && errno == ENOTTY);
}

const char* ToneCode(WatchLine::Tone tone) {
  switch (tone) {
    case WatchLine::Tone::kHeading:
      return "\x1b[2m";
    case WatchLine::Tone::kLate:
      return "\x1b[33m";
    case WatchLine::Tone::kBad:
      return "\x1b[31m";
    default:
      return "";
  }
}

}  // namespace

Terminal::Terminal() : colours_(*EnvironmentOr("NO_COLOR", "") == '\0') { TakeKeys(); }

Terminal::~Terminal() {
  if (before_.has_value() && IsForeground()) tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

bool Terminal::TakeKeys() {
  constexpr auto kLineModes = static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C stays a signal
  termios settings;
  if (!IsForeground() || tcgetattr(STDIN_FILENO, &settings) != 0) return false;
  if ((settings.c_lflag & kLineModes) == 0) return true;
  before_ = settings;
  settings.c_lflag &= ~kLineModes;
  return tcsetattr(STDIN_FILENO, TCSANOW, &settings) == 0;
}

bool Terminal::IsThere() {
  return isatty(STDOUT_FILENO) != 0 && std::strcmp(EnvironmentOr("TERM", "dumb"), "dumb") != 0;
}

// Leaves one row for the cursor.
WatchSize Terminal::size() const {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) {
    return {.columns = 80, .rows = 23};
  }
  return {.columns = window.ws_col, .rows = std::max<size_t>(1, window.ws_row - 1)};
}

void Terminal::Draw(const std::vector<WatchLine>& lines) {
  const size_t columns = size().columns;
  size_t rows = 0;  // rows of the last drawing now: a narrower terminal wraps lines
  for (const size_t drawn : drawn_) rows += std::max<size_t>(1, (drawn + columns - 1) / columns);
  std::string text;
  if (rows > 0) absl::StrAppend(&text, "\x1b[", rows, "A\r");
  drawn_.clear();
  for (const WatchLine& line : lines) {
    const char* const code = colours_ ? ToneCode(line.tone) : "";
    absl::StrAppend(&text, code, line.text, *code == '\0' ? "" : "\x1b[0m", "\x1b[K\n");
    drawn_.push_back(ColumnsOf(line.text));
  }
  absl::StrAppend(&text, "\x1b[J");
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::optional<char> Terminal::ReadKey(absl::Duration timeout) {
  pollfd input{.fd = TakeKeys() ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
  const auto milliseconds = static_cast<int>(absl::ToInt64Milliseconds(timeout));
  char key = 0;
  if (poll(&input, 1, milliseconds) <= 0 || (input.revents & POLLIN) == 0 ||
      read(STDIN_FILENO, &key, 1) != 1) {
    return std::nullopt;
  }
  return key;
}

}  // namespace tug
