// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/testbed.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "launch/hosts/testbed_script.h"
#include "process/log_format.h"

namespace tug {
namespace {

constexpr char kName[] = "deploy/testbed";
constexpr int kHostsLeft = 3;  // exit code of the script
constexpr uint64_t kCounterLimitBytes = 64;

// Runs between fork and exec. In its own process group, so that Ctrl-C does not reach it before us.
[[noreturn]] void BecomeScript(char* const* argv, int input, int output) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(argv[0], argv);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Testbed>> Testbed::Up(uint32_t hosts, const std::string& link) {
  if (geteuid() != 0) {
    return absl::FailedPreconditionError(
        "a testbed needs root, to make network namespaces: run it with sudo");
  }
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot make a pipe: ", std::strerror(errno)));
  }
  const FileDescriptor in_read(in[0]);
  FileDescriptor in_write(in[1]);
  if (pipe2(out, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot make a pipe: ", std::strerror(errno)));
  }
  const FileDescriptor out_read(out[0]);
  FileDescriptor out_write(out[1]);

  std::vector<std::string> words = {"/bin/bash", "-c",      kTestbedScript,        kName,
                                    "hold",      "--hosts", std::to_string(hosts), "--link",
                                    link};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start ", kName, ": ", std::strerror(errno)));
  }
  if (pid == 0) BecomeScript(argv.data(), in_read.get(), out_write.get());
  auto testbed = std::unique_ptr<Testbed>(new Testbed());
  testbed->pid_ = pid;
  testbed->input_ = std::move(in_write);
  out_write = FileDescriptor();  // closed here, so that its end shows that the script has ended
  const absl::Status read = testbed->ReadHosts(out_read.get());
  if (!read.ok()) return read;
  return testbed;
}

absl::Status Testbed::ReadHosts(int fd) {
  std::string line, last;
  char c;
  while (true) {
    const ssize_t got = read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (c != '\n') {
      line += c;
      continue;
    }
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() == 3 && words[0] == "host") hosts_.push_back({words[1], words[2]});
    if (line == "ready") return absl::OkStatus();
    last = std::exchange(line, "");
  }
  absl::string_view said = last;
  absl::ConsumePrefix(&said, absl::StrCat(kName, ": "));
  return absl::FailedPreconditionError(
      absl::StrCat("cannot make hosts: ",
                   said.empty() ? "no output from bash; check that it is installed" : said));
}

absl::StatusOr<std::vector<LinkBytes>> Testbed::ReadLinkBytes() const {
  std::vector<LinkBytes> links(hosts_.size());
  for (size_t host = 0; host < hosts_.size(); ++host) {
    // Read the bridge's end of the link: it receives what the host sends.
    for (const auto& [counter, bytes] :
         {std::pair{"rx_bytes", &links[host].sent}, std::pair{"tx_bytes", &links[host].received}}) {
      const std::string path =
          absl::StrCat("/sys/class/net/tug-link-", host, "/statistics/", counter);
      ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kCounterLimitBytes));
      if (!absl::SimpleAtoi(text, bytes)) {
        return absl::InternalError(absl::StrCat(path, " is not a number"));
      }
    }
  }
  return links;
}

Testbed::~Testbed() {
  input_ = FileDescriptor();
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kHostsLeft) {
    Warn("testbed hosts are left on this machine: remove them with deploy/testbed down");
  }
}

}  // namespace tug
