// SPDX-License-Identifier: Apache-2.0
// deploy/deb and deploy/systemd: what the packages install works and is removed completely. dpkg
// operates on a separate root; package scripts get DPKG_ROOT. Skipped without the necessary
// permissions.

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kDpkg[] = "/usr/bin/dpkg";
constexpr char kDpkgDeb[] = "/usr/bin/dpkg-deb";
constexpr char kDebhelper[] = "/usr/bin/dh";
constexpr char kVerify[] = "/usr/bin/systemd-analyze";
constexpr char kSysusers[] = "/usr/bin/systemd-sysusers";
constexpr char kMan[] = "/usr/bin/man";
constexpr char kLintian[] = "/usr/bin/lintian";

class DebTest : public TugTest {
 protected:
  const Process& RunProgram(const std::string& program, const Texts& arguments) {
    Process& process = StartProgram(program, arguments);
    // Packing takes a minute on a busy machine.
    EXPECT_TRUE(process.WaitForEnd(After(5 * kPatience))) << process.command() << " does not end";
    return process;
  }
  std::string Output(const std::string& program, const Texts& arguments) {
    const Process& process = RunProgram(program, arguments);
    EXPECT_EQ(process.exit_code(), 0) << process.command() << "\n"
                                      << process.out() << process.err();
    return process.out();
  }
  // Path of a package in the folder `to`.
  std::string Deb(const std::string& package = "tugboat", const std::string& to = "debs") const {
    for (const auto& entry : fs::directory_iterator(Path(to))) {
      const std::string name = entry.path().filename().string();
      if (absl::StartsWith(name, package + "_") && absl::EndsWith(name, ".deb")) {
        return entry.path().string();
      }
    }
    ADD_FAILURE() << "no package " << package;
    return "";
  }
  Texts Debs() const {
    Texts debs;
    for (const std::string& package : packages_) debs.push_back(Deb(package));
    return debs;
  }
  void MakePackages(const std::string& to = "debs") {
    setenv("DEBEMAIL", "maintainer@debian.org", 1);
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    // dpkg needs programs that are only in root's PATH.
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    if (!fs::exists(kDebhelper)) {
      GTEST_SKIP() << "skipped: no debhelper; deploy/setup --tests installs it";
    }
    fs::create_directory(Path(to));
    EXPECT_THAT(Output("deploy/deb", {Path(to), "--from", fs::absolute(".").string()}),
                HasSubstr("install the programs with: apt install"));
  }
  // Makes an empty root with the files that dpkg needs to start.
  void MakeRoot() {
    for (const char* folder : {"info", "updates", "triggers", "alternatives"}) {
      fs::create_directories(Path(absl::StrCat("root/var/lib/dpkg/", folder)));
    }
    fs::create_directories(Path("root/etc"));
    Write("root/var/lib/dpkg/status", "");
    Write("root/var/lib/dpkg/available", "");
  }
  Texts OnRoot(const Texts& what) const {
    return Texts{absl::StrCat("--root=", Path("root")), "--force-depends",
                 "--force-script-chrootless", absl::StrCat("--log=", Path("dpkg.log"))} +
           what;
  }
  // Files and links in the root, except those maintained by dpkg and systemd-sysusers.
  std::set<std::string> Files() const {
    std::set<std::string> files;
    const fs::path root = Path("root");
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string name = entry.path().lexically_relative(root).string();
      if (entry.is_directory() || absl::StartsWith(name, "var/lib/dpkg/")) continue;
      files.insert(name);
    }
    for (const char* own : {"etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/passwd-",
                            "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/.pwd.lock"}) {
      files.erase(own);
    }
    return files;
  }

  const Texts packages_ = {"tugboat", "tugboat-lab", "libtug0", "libtug-dev"};
};

TEST_F(DebTest, HasWhatItSaysAndDependsOnDebiansLibraries) {
  ASSERT_NO_FATAL_FAILURE(MakePackages());
  if (IsSkipped()) return;
  // Format: "tug 0.1.0 (...)".
  const std::vector<std::string> said = absl::StrSplit(Output("cli/tug", {"--version"}), ' ');
  const std::string fields = Output(kDpkgDeb, {"--info", Deb()});
  EXPECT_THAT(fields, HasSubstr(absl::StrCat(" Version: ", said[1], "\n")));
  EXPECT_THAT(fields,
              AllOf(HasSubstr("libc6 (>= 2.3"), HasSubstr("libgrpc++"), HasSubstr("libzmq5"),
                    HasSubstr("libprotobuf"), HasSubstr("conffiles"), HasSubstr("sysusers")));
  EXPECT_THAT(
      Output(kDpkgDeb, {"--contents", Deb()}),
      AllOf(HasSubstr("./usr/bin/tug\n"), HasSubstr("tug-coordinator.service"),
            HasSubstr("tug-server@.service"), HasSubstr("tug-worker@.service"),
            HasSubstr("man1/tug.1.gz"), HasSubstr("man5/tug-job.5.gz"),
            HasSubstr("bash-completion/completions/tug"), HasSubstr("zsh/vendor-completions/_tug"),
            Not(HasSubstr("libtug")), Not(HasSubstr("tug-lab")), Not(HasSubstr("/tmp/"))));
  EXPECT_THAT(Output(kDpkgDeb, {"--contents", Deb("tugboat-lab")}),
              HasSubstr("./usr/bin/tug-lab\n"));
  EXPECT_THAT(Output(kDpkgDeb, {"--contents", Deb("libtug0")}), HasSubstr("/libtug.so.0 -> "));
  EXPECT_THAT(Output(kDpkgDeb, {"--contents", Deb("libtug-dev")}),
              AllOf(HasSubstr("./usr/include/tug.h\n"), HasSubstr("/libtug.so -> libtug.so.0\n"),
                    HasSubstr("pkgconfig/tug.pc"), HasSubstr("cmake/tug/tugConfig.cmake")));
}

TEST_F(DebTest, TheSameSourcesGiveTheSamePackages) {
  ASSERT_NO_FATAL_FAILURE(MakePackages());
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(MakePackages("again"));
  for (const std::string& package : packages_) {
    EXPECT_EQ(Output("/usr/bin/cmp", {Deb(package), Deb(package, "again")}), "");
  }
}

TEST_F(DebTest, InstallsRunsAndGoesWithoutATrace) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: dpkg on a root of its own needs root";
  if (!fs::exists(kSysusers)) GTEST_SKIP() << "skipped: no systemd-sysusers";
  ASSERT_NO_FATAL_FAILURE(MakePackages());
  if (IsSkipped()) return;
  MakeRoot();
  Output(kDpkg, OnRoot(Texts{"--install"} + Debs()));
  EXPECT_THAT(ReadText(Path("root/etc/passwd")), HasSubstr("tugboat:"));

  const std::string tug = Path("root/usr/bin/tug");
  EXPECT_EQ(Output(tug, {"--version"}), Output("cli/tug", {"--version"}));
  Output(tug, {"train", job(), "--run-dir", Path("run")});
  EXPECT_EQ(NewestCheckpoint("run"), 50u);
  EXPECT_THAT(Output(tug, {"bench", "--help"}), HasSubstr("push-pull"));

  // Files that the user changed stay until a purge.
  std::ofstream(Path("root/etc/tugboat/node.conf"), std::ios::app) << "LISTEN=10.0.0.1\n";
  Output(kDpkg, OnRoot(Texts{"--remove"} + packages_));
  // deb-systemd-helper keeps its record of a unit until the purge.
  EXPECT_EQ(Files(), (std::set<std::string>{"etc/tugboat/coordinator.conf", "etc/tugboat/node.conf",
                                            "var/lib/systemd/deb-systemd-helper-enabled/"
                                            "tug-coordinator.service.dsh-also"}));
  Output(kDpkg, OnRoot({"--install", Deb()}));
  EXPECT_THAT(ReadText(Path("root/etc/tugboat/node.conf")), HasSubstr("LISTEN=10.0.0.1\n"));
  Output(kDpkg, OnRoot({"--purge", "tugboat"}));
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_FALSE(fs::exists(Path("root/etc/tugboat")));
  EXPECT_THAT(ReadText(Path("root/etc/passwd")), Not(HasSubstr("tugboat:")));
}

TEST_F(DebTest, UnitsAreWhatSystemdTakes) {
  if (!fs::exists(kVerify)) GTEST_SKIP() << "skipped: no systemd-analyze";
  Texts units;
  for (const char* name :
       {"tug-coordinator.service", "tug-server@.service", "tug-worker@.service"}) {
    // systemd-analyze requires that the program exists.
    Write(name, absl::StrReplaceAll(ReadText(absl::StrCat("deploy/systemd/", name)),
                                    {{"/usr/bin/tug", fs::absolute("cli/tug").string()}}));
    units.push_back(absl::StrReplaceAll(Path(name), {{"@.", "@1."}}));
  }
  for (const std::string& unit : units) {
    if (!fs::exists(unit)) fs::copy_file(absl::StrReplaceAll(unit, {{"@1.", "@."}}), unit);
  }
  const Process& verify = RunProgram(kVerify, Texts{"verify", "--man=no"} + units);
  EXPECT_EQ(verify.exit_code(), 0);
  EXPECT_EQ(verify.out() + verify.err(), "");
}

TEST_F(DebTest, UnitsNameOptionsThatThereAre) {
  const std::string help = Output("cli/tug", {"coordinator", "--help"}) +
                           Output("cli/tug", {"server", "--help"}) +
                           Output("cli/tug", {"worker", "--help"});
  int options = 0;
  for (const char* name :
       {"tug-coordinator.service", "tug-server@.service", "tug-worker@.service"}) {
    for (const std::string& word : std::vector<std::string>(
             absl::StrSplit(ReadText(absl::StrCat("deploy/systemd/", name)), ' '))) {
      if (!absl::StartsWith(word, "--")) continue;
      EXPECT_THAT(help, HasSubstr(word)) << name;
      ++options;
    }
  }
  EXPECT_GE(options, 7);
}

TEST_F(DebTest, ManPagesAreWhatManTakes) {
  if (!fs::exists(kMan)) GTEST_SKIP() << "skipped: no man; deploy/setup --tests installs it";
  const auto page = [&](const std::string& topic) {
    Write("page", Output("cli/tug", {"help", topic}));
    const Process& man = RunProgram("/usr/bin/env", {"MANWIDTH=160", "LC_ALL=C.UTF-8", kMan,
                                                     "--warnings=w", "-l", Path("page")});
    EXPECT_EQ(man.exit_code(), 0);
    EXPECT_EQ(man.err(), "");
    return man.out();
  };
  EXPECT_THAT(page("man"),
              AllOf(HasSubstr("tug train"), HasSubstr("tug doctor"), HasSubstr("--hosts FILE")));
  EXPECT_THAT(page("man-job"), AllOf(HasSubstr("optional uint64 steps"), HasSubstr("tug new")));
}

TEST_F(DebTest, LintianFindsNoError) {
  if (!fs::exists(kLintian))
    GTEST_SKIP() << "skipped: no lintian; deploy/setup --tests installs it";
  ASSERT_NO_FATAL_FAILURE(MakePackages());
  if (IsSkipped()) return;
  const Process& lintian = RunProgram(
      kLintian, Texts{"--allow-root", "--fail-on", "error", "--tag-display-limit", "0"} + Debs());
  EXPECT_EQ(lintian.exit_code(), 0) << lintian.out() << lintian.err();
}

TEST_F(DebTest, SaysInOneLineWhatIsWrong) {
  struct {
    Texts arguments;
    std::string error;
  } const cases[] = {
      {{Path("none"), "--from", "."}, "none: no such folder"},
      {{Path(""), "--from"}, "--from needs a folder"},
      {{Path(""), "--program", "x"}, "unknown option --program"},
      {{Path(""), "--from", "none"}, "none/cli/tug-lab: no such program"},
      {{Path(""), "--from", Path("built")}, "cli/tug: --version printed"},
  };
  fs::create_directories(Path("built/cli"));
  for (const char* name : {"tug", "tug-lab"}) {
    fs::create_symlink("/bin/true", Path(absl::StrCat("built/cli/", name)));
  }
  for (const auto& [arguments, error] : cases) {
    const Process& process = RunProgram("deploy/deb", arguments);
    EXPECT_EQ(process.exit_code(), 1);
    EXPECT_THAT(process.err(), AllOf(::testing::StartsWith("deploy/deb: "), HasSubstr(error)));
  }
}

}  // namespace
}  // namespace tug
