// SPDX-License-Identifier: Apache-2.0
// `tug status --watch` of a real job: in a pseudo-terminal, interpreted like a screen, and into a
// file.

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A program in a pseudo-terminal with a model of its screen. Supports what the view uses: text,
// newlines, cursor up, erase to the end of the line and of the screen, colours.
class ScreenedProcess {
 public:
  enum class Place { kForeground, kBackground };  // group of its terminal

  ScreenedProcess(const std::vector<std::string>& argv, int columns, int rows,
                  Place place = Place::kForeground) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    std::vector<char*> arguments;
    for (const std::string& one : argv) arguments.push_back(const_cast<char*>(one.c_str()));
    arguments.push_back(nullptr);
    pid_ = forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      setenv("TERM", "xterm-256color", 1);
      if (place == Place::kBackground) BeShellOf(arguments.data());
      execv(arguments[0], arguments.data());
      _exit(127);
    }
  }
  ~ScreenedProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(fd_);
  }

  // Acts like a shell's `fg`. REQUIRES: the program has drawn in the background.
  void ToForeground() const { kill(pid_, SIGUSR1); }
  // Whether the terminal has the modes of a shell: echo and line input.
  bool HasLineModes() const {
    termios modes;
    EXPECT_EQ(tcgetattr(fd_, &modes), 0);
    return (modes.c_lflag & kLineModes) == kLineModes;
  }
  void SetLineModes() const {
    termios modes;
    ASSERT_EQ(tcgetattr(fd_, &modes), 0);
    modes.c_lflag |= kLineModes;
    ASSERT_EQ(tcsetattr(fd_, TCSANOW, &modes), 0);
  }
  void Press(char key) const { EXPECT_EQ(write(fd_, &key, 1), 1); }
  void Resize(int columns, int rows) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    ASSERT_EQ(ioctl(fd_, TIOCSWINSZ, &size), 0);
    lines_ = {""};  // a real terminal reflows its lines; this one clears them
    row_ = column_ = 0;
    drawings_ = 0;
    resized_ = true;
  }
  // Reads until `holds()`; false at the deadline or the end of the program.
  bool ReadUntil(const std::function<bool()>& holds, absl::Time deadline) {
    while (!holds()) {
      pollfd input{fd_, POLLIN, 0};
      const auto left = absl::ToInt64Milliseconds(deadline - absl::Now());
      char bytes[4096];
      if (left <= 0 || poll(&input, 1, static_cast<int>(left)) <= 0) return false;
      const ssize_t count = read(fd_, bytes, sizeof(bytes));
      if (count <= 0) return holds();  // EIO: no process has it open
      said_.append(bytes, static_cast<size_t>(count));
      for (ssize_t i = 0; i < count; ++i) Take(bytes[i]);
    }
    return true;
  }
  // Reads to the program's end; returns its exit code.
  int End() {
    ReadUntil([] { return false; }, After(kPatience));
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string screen() const { return absl::StrJoin(lines_, "\n"); }
  const std::string& said() const { return said_; }
  int drawings() const { return drawings_; }
  size_t longest() const {
    size_t longest = 0;
    for (const std::string& line : lines_) {
      longest = std::max<size_t>(longest, std::count_if(line.begin(), line.end(), [](char c) {
                                   return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
                                 }));
    }
    return longest;
  }

 private:
  static constexpr tcflag_t kLineModes = ICANON | ECHO;

  // Acts like a shell for `argv &`, and for `fg` at SIGUSR1. Exits like the program.
  [[noreturn]] static void BeShellOf(char* const* argv) {
    sigset_t wish;
    sigemptyset(&wish);
    sigaddset(&wish, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wish, nullptr);
    const pid_t program = fork();
    if (program == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setpgid(0, 0);
      sigprocmask(SIG_UNBLOCK, &wish, nullptr);
      execv(argv[0], argv);
      _exit(127);
    }
    int signal = 0;
    sigwait(&wish, &signal);
    tcsetpgrp(STDIN_FILENO, program);
    int status = 0;
    waitpid(program, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }

  void Take(char c) {
    if (!escape_.empty()) {
      escape_ += c;
      if (escape_.size() > 2 && isalpha(c) != 0) Obey(std::exchange(escape_, ""));
      return;
    }
    if (c == '\x1b') {
      escape_ = c;
    } else if (c == '\r') {
      column_ = 0;
    } else if (c == '\n') {
      if (++row_ == lines_.size()) lines_.emplace_back();
    } else {
      if (column_ == 0) lines_[row_].clear();  // the view writes complete lines
      lines_[row_] += c;
      ++column_;
    }
  }
  void Obey(const std::string& code) {
    if (code.back() == 'A') {
      const auto up = static_cast<size_t>(std::atoi(code.c_str() + 2));
      EXPECT_TRUE(up <= row_ || resized_) << "above what it has drawn";
      resized_ = false;
      row_ -= std::min(row_, up);
    } else if (code.back() == 'J') {
      lines_.resize(row_ + 1);
      lines_[row_].clear();
      ++drawings_;
    }
  }

  int fd_ = -1;
  pid_t pid_ = -1;
  std::vector<std::string> lines_ = {""};
  size_t row_ = 0, column_ = 0;
  int drawings_ = 0;
  bool resized_ = false;  // set until something is drawn again
  std::string escape_;
  std::string said_;
};

class WatchTest : public TugTest {
 protected:
  static std::string Program() { return "cli/tug"; }
  Texts Watching(const std::string& run) const {
    return {Program(), "status", "--watch", Path(run)};
  }
};

TEST_F(WatchTest, RedrawsInPlaceFollowsTheSizeAndEndsWithQ) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  ScreenedProcess watch(Watching("run"), 130, 40);
  ASSERT_TRUE(watch.ReadUntil([&] { return watch.drawings() >= 4; }, After(kPatience)))
      << watch.said();
  EXPECT_THAT(watch.screen(),
              AllOf(HasSubstr("running, step "), HasSubstr("loss "), HasSubstr("\nserver-0 "),
                    HasSubstr("\nworker-0 "), HasSubstr("ACTIVITY"), HasSubstr("tokens/s")));
  const Texts lines = absl::StrSplit(watch.screen(), '\n');
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.rfind("NODE ", 0) == 0; }),
            1)
      << "drawn in place: " << watch.screen();
  watch.Resize(60, 8);
  ASSERT_TRUE(watch.ReadUntil([&] { return watch.drawings() >= 2; }, After(kPatience)));
  EXPECT_LE(watch.longest(), 60u) << watch.screen();
  const Texts small = absl::StrSplit(watch.screen(), '\n');
  EXPECT_LE(small.size(), 8u) << watch.screen();
  watch.Press('q');
  EXPECT_EQ(watch.End(), 0);
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
}

TEST_F(WatchTest, EndsWithTheJobAndSaysHow) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  ScreenedProcess watch(Watching("run"), 130, 40);
  ASSERT_TRUE(watch.ReadUntil([&] { return watch.drawings() >= 1; }, After(kPatience)));
  train.Signal(SIGINT);
  EXPECT_EQ(watch.End(), 0) << watch.said();
  EXPECT_THAT(watch.said(), ::testing::ContainsRegex(": (ended|stopped) at step [0-9,]+ of"));
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
}

TEST_F(WatchTest, InTheBackgroundItLeavesTheKeyboardToTheShell) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  ScreenedProcess watch(Watching("run"), 130, 40, ScreenedProcess::Place::kBackground);
  ASSERT_TRUE(watch.ReadUntil([&] { return watch.drawings() >= 2; }, After(kPatience)));
  EXPECT_TRUE(watch.HasLineModes());
  watch.Press('x');
  const int drawn = watch.drawings();
  EXPECT_TRUE(watch.ReadUntil([&] { return watch.drawings() >= drawn + 2; }, After(kPatience)))
      << "it was stopped as it read the key";
  watch.ToForeground();
  const auto takes_keys = [&] { return !watch.HasLineModes(); };
  ASSERT_TRUE(watch.ReadUntil(takes_keys, After(kPatience)));
  // Like Ctrl-Z and fg.
  ASSERT_NO_FATAL_FAILURE(watch.SetLineModes());
  ASSERT_TRUE(watch.ReadUntil(takes_keys, After(kPatience)));
  watch.Press('q');
  EXPECT_EQ(watch.End(), 0);
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
}

TEST_F(WatchTest, WithoutATerminalItSaysWhatChangesInPlainLines) {
  Process& train = StartTraining("run", {"train.steps=400"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  Process& watch = Start({"status", "--watch", Path("run")});
  ASSERT_TRUE(watch.WaitForEnd(After(kPatience))) << watch.out();
  EXPECT_EQ(watch.exit_code(), 0) << watch.err();
  EXPECT_THAT(watch.out(), AllOf(HasSubstr("running, step "), HasSubstr("worker-"),
                                 HasSubstr("at step 400 of 400"), Not(HasSubstr("\x1b"))));
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
}

}  // namespace
}  // namespace tug
