// SPDX-License-Identifier: Apache-2.0
// `tug doctor` on hosts with a real sshd: loopback addresses and, as root, network namespaces with
// their own links and mounts. Skipped without sshd.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/hosts/testbed.h"
#include "nlohmann/json.hpp"
#include "tests/support/sshd_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kTc[] = "/usr/sbin/tc";

class DoctorTest : public SshdTest {
 protected:
  // Command that replaces ssh and writes a line for each login.
  std::string CountingSsh() const {
    Write("counting_ssh", absl::StrCat("echo login >> ", Path("logins"), "\nexec ssh -F ",
                                       Path("ssh_config"), " \"$@\"\n"));
    return absl::StrCat("sh ", Path("counting_ssh"));
  }
  std::string Ssh() const { return absl::StrCat("ssh -F ", Path("ssh_config")); }
  Texts Arguments(const Texts& more) const { return ArgumentsWith(Ssh(), more); }
  Texts ArgumentsWith(const std::string& ssh, const Texts& more) const {
    return Texts{"doctor",    job(), "--hosts",   Path("hosts.txt"),
                 "--ssh",     ssh,   "--program", fs::absolute("cli/tug").string(),
                 "--seconds", "2",   "--json"} +
           more;
  }
  // Findings of a process that has ended.
  static Json FindingsOf(const Process& doctor) {
    const Json findings = Json::parse(doctor.out(), nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(findings.is_array()) << doctor.out() << doctor.err();
    return findings;
  }
  // Level of a finding; "" if missing.
  static std::string LevelOf(const Json& findings, const std::string& thing,
                             const std::string& check) {
    for (const Json& finding : findings) {
      if (finding["thing"] == thing && finding["check"] == check) return finding["level"];
    }
    return "";
  }
  static size_t CountOf(const Json& findings, const std::string& level) {
    return static_cast<size_t>(std::count_if(findings.begin(), findings.end(),
                                             [&](const Json& f) { return f["level"] == level; }));
  }
};

TEST_F(DoctorTest, LooksAtThisMachineAlone) {
  const Process& doctor = Run({"doctor", job()});
  EXPECT_EQ(doctor.exit_code(), 0) << doctor.out() << doctor.err();
  EXPECT_THAT(doctor.out(), AllOf(HasSubstr("ok       here  memory"), HasSubstr("here  text"),
                                  HasSubstr("0 problems, ")));
  EXPECT_FALSE(fs::exists(Path("runs"))) << "it leaves nothing";
}

TEST_F(DoctorTest, NeedsNoJob) {
  const Process& doctor = Run({"doctor", "--json"});
  EXPECT_EQ(doctor.exit_code(), 0) << doctor.out() << doctor.err();
  EXPECT_EQ(LevelOf(FindingsOf(doctor), "here", "memory"), "ok");
}

TEST_F(DoctorTest, MeasuresHostsAndTheirLinks) {
  ASSERT_NO_FATAL_FAILURE(StartSshd({"127.0.0.1", "127.0.0.2"}));
  WriteHosts({"127.0.0.1", "127.0.0.2"});
  const Process& doctor = Run(Arguments({}));
  EXPECT_EQ(doctor.exit_code(), 0) << doctor.out() << doctor.err();
  const Json findings = FindingsOf(doctor);
  EXPECT_EQ(CountOf(findings, "problem"), 0u) << findings.dump(1);
  for (const char* host : {"127.0.0.1", "127.0.0.2"}) {
    EXPECT_EQ(LevelOf(findings, host, "login"), "ok");
    EXPECT_EQ(LevelOf(findings, host, "program"), "ok");
  }
  EXPECT_EQ(LevelOf(findings, "127.0.0.2", "shared run folder"), "ok");
  EXPECT_NE(LevelOf(findings, "127.0.0.1 -> 127.0.0.2", "bandwidth"), "");
  EXPECT_NE(LevelOf(findings, "127.0.0.2 -> 127.0.0.1", "bandwidth"), "");
  EXPECT_EQ(LevelOf(findings, "127.0.0.1 <-> 127.0.0.2", "clock"), "ok");
  for (const auto& entry : fs::directory_iterator(Path(""))) {
    EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr(".tug-doctor"))) << "left behind";
  }
}

TEST_F(DoctorTest, GoesOnWithoutAHostThatCannotBeReached) {
  ASSERT_NO_FATAL_FAILURE(StartSshd({"127.0.0.1"}));
  Write("hosts.txt", absl::StrCat("127.0.0.1:", port_, "\n127.0.0.9:", port_, "\n"));
  const Process& doctor = Run(ArgumentsWith(CountingSsh(), {}));
  EXPECT_EQ(doctor.exit_code(), 1) << doctor.out() << doctor.err();
  const Json findings = FindingsOf(doctor);
  EXPECT_EQ(LevelOf(findings, "127.0.0.9", "login"), "problem") << findings.dump(1);
  EXPECT_EQ(LevelOf(findings, "127.0.0.1", "program"), "ok");
  EXPECT_EQ(LevelOf(findings, "127.0.0.1", "memory"), "ok");
  EXPECT_EQ(ReadText(Path("logins")), "login\nlogin\nlogin\n")
      << "one at each host, and one for the probe";
}

TEST_F(DoctorTest, LooksAtTheRunFolderWithoutAJob) {
  const Process& fine = Run({"doctor", "--run-dir", Path("runs/a")});
  EXPECT_EQ(fine.exit_code(), 0) << fine.out() << fine.err();
  EXPECT_THAT(fine.out(), HasSubstr(absl::StrCat(Path("runs/a"), " can be created in ")));
  const Process& wrong = Run({"doctor", "--run-dir", "/proc/none"});
  EXPECT_EQ(wrong.exit_code(), 1) << wrong.out() << wrong.err();
  EXPECT_THAT(wrong.out(), HasSubstr("problem  here  run folder"));
}

TEST_F(DoctorTest, SaysWhatIsMissing) {
  fs::remove(Path("text.txt"));
  const Process& doctor =
      Run({"doctor", job(), "--run-dir", "/proc/none", "--set", "model.width=16384", "--set",
           "model.layers=24", "--set", "comm.segment_elements=262144"});
  EXPECT_EQ(doctor.exit_code(), 1) << doctor.out();
  EXPECT_THAT(doctor.out(),
              AllOf(HasSubstr("problem  here  run folder"), HasSubstr("problem  here  text"),
                    HasSubstr("problem  here  memory")));
  EXPECT_THAT(doctor.out(), HasSubstr("; remedy: "));
}

TEST_F(DoctorTest, SaysInOneLineWhatIsWrong) {
  const Process& process = Run({"doctor", "--hosts", Path("none.txt")});
  ExpectErrorLine(process, {"none.txt"});
}

// Three hosts with their own addresses and mounts: the second one sees an empty folder instead of
// the shared one, and the third one's outgoing link is slow.
class DoctorAcrossHostsTest : public DoctorTest {
 protected:
  void RunHere(const std::string& program, const Texts& arguments) {
    Process& process = StartProgram(program, arguments);
    ASSERT_TRUE(process.WaitForEnd(After(kPatience)));
    ASSERT_EQ(process.exit_code(), 0) << process.command() << process.err();
  }
  void MakeHosts() {
    absl::StatusOr<std::unique_ptr<Testbed>> testbed = Testbed::Up(3, "400mbit");
    if (!testbed.ok()) GTEST_SKIP() << "skipped: " << testbed.status();
    testbed_ = *std::move(testbed);
    const auto& hosts = testbed_->hosts();
    fs::create_directory(Path("shared"));
    Texts addresses;
    for (size_t i = 0; i < hosts.size(); ++i) {
      Texts in = {kIp, "netns", "exec", hosts[i].name};
      if (i == 1) {
        in = in + Texts{"unshare",
                        "--mount",
                        "sh",
                        "-c",
                        absl::StrCat("mount -t tmpfs none ", Path("shared"), " && exec \"$@\""),
                        "sh"};
      }
      ASSERT_NO_FATAL_FAILURE(StartSshd({hosts[i].address}, in));
      addresses.push_back(hosts[i].address);
    }
    WriteHosts(addresses);
  }
  std::unique_ptr<Testbed> testbed_;
};

TEST_F(DoctorAcrossHostsTest, FindsTheSlowLinkAndTheFolderThatIsNotShared) {
  ASSERT_NO_FATAL_FAILURE(MakeHosts());
  if (IsSkipped()) return;
  const auto& hosts = testbed_->hosts();
  const Texts in_third = {"netns", "exec", hosts[2].name};
  Process& links =
      StartProgram(kIp, in_third + Texts{"sh", "-c", "ls /sys/class/net | grep -v lo"});
  ASSERT_TRUE(links.WaitForEnd(After(kPatience)));
  const std::string link = links.out().substr(0, links.out().find('\n'));
  ASSERT_NO_FATAL_FAILURE(
      RunHere(kIp, in_third + Texts{kTc, "qdisc", "replace", "dev", link, "root", "tbf", "rate",
                                    "20mbit", "burst", "64kb", "latency", "50ms"}));
  Process& doctor = StartProgram(
      kIp, Texts{"netns", "exec", hosts[0].name, fs::absolute("cli/tug").string()} +
               Arguments({"--run-dir", Path("shared/run"), "--set", "cluster.servers=2"}));
  ASSERT_TRUE(doctor.WaitForEnd(After(kPatience))) << doctor.err();
  EXPECT_EQ(doctor.exit_code(), 1) << doctor.out() << doctor.err();
  const Json findings = FindingsOf(doctor);
  const std::string a = hosts[0].address, b = hosts[1].address, c = hosts[2].address;
  EXPECT_EQ(LevelOf(findings, b, "shared run folder"), "problem") << findings.dump(1);
  EXPECT_EQ(LevelOf(findings, absl::StrCat(c, " -> ", a), "bandwidth"), "warning");
  EXPECT_EQ(LevelOf(findings, absl::StrCat(c, " -> ", b), "bandwidth"), "warning");
  EXPECT_EQ(LevelOf(findings, absl::StrCat(a, " -> ", c), "bandwidth"), "ok");
  EXPECT_EQ(LevelOf(findings, absl::StrCat(a, " -> ", b), "bandwidth"), "ok");
}

}  // namespace
}  // namespace tug
