// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sshd_test.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/free_port.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr char kSshd[] = "/usr/sbin/sshd";
constexpr char kKeygen[] = "/usr/bin/ssh-keygen";

}  // namespace

void SshdTest::SetUp() {
  if (!fs::exists(kSshd) || !fs::exists(kKeygen)) {
    GTEST_SKIP() << "skipped: no sshd; deploy/setup --tests installs it";
  }
  std::error_code ignored;
  if (geteuid() == 0) fs::create_directory("/run/sshd", ignored);  // as the Debian package does
  for (const char* key : {"host_key", "user_key"}) {
    Process& keygen = StartProgram(kKeygen, {"-q", "-t", "ed25519", "-N", "", "-f", Path(key)});
    ASSERT_TRUE(keygen.WaitForEnd(After(kPatience)));
    ASSERT_EQ(keygen.exit_code(), 0) << keygen.err();
  }
  chmod(Path("user_key").c_str(), 0600);
}

void SshdTest::TearDown() {
  for (Process* sshd : sshds_) {
    sshd->Signal(SIGKILL);
    sshd->WaitForEnd(After(kPatience));
  }
  TugTest::TearDown();
}

void SshdTest::StartSshd(const Texts& addresses, const Texts& in) {
  std::optional<std::string> listens;
  for (int attempt = 0; attempt < 5 && !listens.has_value(); ++attempt) {
    if (port_ == 0 || in.empty()) port_ = FreePort();
    const std::string config = absl::StrCat("sshd_config-", sshds_.size());
    Write(config,
          absl::StrCat("Port ", port_, "\nListenAddress ",
                       absl::StrJoin(addresses, "\nListenAddress "), "\nHostKey ", Path("host_key"),
                       "\nAuthorizedKeysFile ", Path("user_key.pub"),
                       "\nPidFile none\nStrictModes no\nPasswordAuthentication no\n"
                       "KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n"
                       "SetEnv TUG_TEST_ID=",
                       test_id(), " XDG_CACHE_HOME=", Path("cache"), "\n"));
    Texts argv = in + Texts{kSshd, "-D", "-e", "-f", Path(config)};
    const std::string program = argv[0];
    argv.erase(argv.begin());
    Process& sshd = StartProgram(program, argv);
    sshds_.push_back(&sshd);
    const auto ready = [&] { return absl::StrContains(sshd.err(), "Server listening"); };
    if (sshd.WaitUntil(ready, After(kPatience))) listens = sshd.err();
  }
  ASSERT_TRUE(listens.has_value()) << sshds_.back()->err();
  const std::string key = ReadText(Path("host_key.pub"));
  for (const std::string& address : addresses)
    absl::StrAppend(&known_hosts_, "[", address, "]:", port_, " ", key);
  Write("known_hosts", known_hosts_);
  Write("ssh_config", absl::StrCat("Host *\nIdentityFile ", Path("user_key"),
                                   "\nIdentitiesOnly yes\nStrictHostKeyChecking yes\n"
                                   "GlobalKnownHostsFile /dev/null\nUserKnownHostsFile ",
                                   Path("known_hosts"), "\nLogLevel ERROR\n"));
}

void SshdTest::WriteHosts(const Texts& addresses) {
  std::string text = "# of a test\n";
  for (const std::string& address : addresses) absl::StrAppend(&text, address, ":", port_, "\n");
  Write("hosts.txt", text);
}

}  // namespace tug
