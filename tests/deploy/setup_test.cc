// SPDX-License-Identifier: Apache-2.0
// deploy/setup on a system with dnf instead of apt-get, both stood in for by scripts.

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class SetupTest : public TugTest {
 protected:
  void WriteProgram(const std::string& name, const std::string& script) {
    Write(absl::StrCat("bin/", name), absl::StrCat("#!/bin/bash\n", script));
    fs::permissions(Path(absl::StrCat("bin/", name)), fs::perms::owner_all);
  }
  // A system where dnf installs all but bazel, and apt-get is not to be found.
  void MakeSystem() {
    fs::create_directories(Path("bin"));
    for (const char* tool :
         {"bash", "cat", "env", "grep", "mktemp", "rm", "sed", "tail", "touch"}) {
      fs::create_symlink(fs::exists(absl::StrCat("/usr/bin/", tool))
                             ? absl::StrCat("/usr/bin/", tool)
                             : absl::StrCat("/bin/", tool),
                         Path(absl::StrCat("bin/", tool)));
    }
    fs::create_directories(Path("installed"));
    WriteProgram("rpm", absl::StrCat("[[ -e ", Path("installed"), "/${@: -1} ]]\n"));
    WriteProgram("dnf", absl::StrCat("[[ ${@: -1} != bazel ]] || "
                                     "{ echo \"No match for argument: ${@: -1}\" >&2; exit 1; }\n"
                                     "touch ",
                                     Path("installed"), "/${@: -1}\n"));
    WriteProgram("sudo", "[[ $1 != -n ]] || shift\nexec \"$@\"\n");
    WriteProgram("true", "exit 0\n");
    setenv("PATH", Path("bin").c_str(), 1);
  }
  const Process& RunSetup() {
    Process& process = StartProgram("deploy/setup", {});
    EXPECT_TRUE(process.WaitForEnd(After(kPatience)));
    return process;
  }
};

TEST_F(SetupTest, WithDnfInstallsWhatThereIsAndNamesTheRest) {
  ASSERT_NO_FATAL_FAILURE(MakeSystem());
  const Process& first = RunSetup();
  EXPECT_EQ(first.exit_code(), 1) << first.out() << first.err();
  EXPECT_THAT(first.err(), HasSubstr("deploy/setup: dnf could not install: bazel; install "
                                     "bazel from elsewhere"));
  EXPECT_TRUE(fs::exists(Path("installed/grpc-devel")));

  // A program that is in the PATH counts as installed.
  WriteProgram("bazel", "");
  const Process& second = RunSetup();
  EXPECT_EQ(second.exit_code(), 0) << second.out() << second.err();
  EXPECT_THAT(second.out(), Not(HasSubstr("installing")));
}

TEST_F(SetupTest, ElsewhereNamesTheContainer) {
  ASSERT_NO_FATAL_FAILURE(MakeSystem());
  fs::remove(Path("bin/dnf"));
  const Process& setup = RunSetup();
  EXPECT_EQ(setup.exit_code(), 1);
  EXPECT_THAT(setup.err(), HasSubstr("build in a container (Containerfile)"));
}

}  // namespace
}  // namespace tug
