// SPDX-License-Identifier: Apache-2.0
// deploy/bundle: a bundle contains everything that `tug` needs on a host, except glibc.

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kNotPermitted = 77;  // exit code of tests/deploy/bare_root

class BundleTest : public TugTest {
 protected:
  // Runs a program to its end, with any exit code.
  const Process& RunProgram(const std::string& program, const Texts& arguments) {
    Process& process = StartProgram(program, arguments);
    EXPECT_TRUE(process.WaitForEnd(After(kPatience))) << process.command() << " does not end";
    return process;
  }
  // Runs a command of the bundle on a host with nothing but glibc, whose root is Path("root").
  const Process& RunThere(const Texts& arguments) {
    return RunProgram("tests/deploy/bare_root", Texts{Path("root"), "/tug/bin/tug"} + arguments);
  }
  // Expects success and returns the stdout.
  static std::string Output(const Process& process) {
    EXPECT_EQ(process.exit_code(), 0) << process.command() << "\n" << process.err();
    return process.out();
  }
};

TEST_F(BundleTest, TrainsOnAHostWithGlibcAlone) {
  const std::string archive = Path("tug.tar.zst");  // .tar.xz takes a minute
  // The libraries of later releases need later versions.
  const bool debian_12 = absl::StrContains(ReadText("/etc/os-release"), "VERSION_ID=\"12\"");
  const std::string floor = debian_12 ? "2.34 or newer" : "2.";
  EXPECT_THAT(
      Output(RunProgram("deploy/bundle", {archive, "--programs", fs::absolute("cli/tug").string(),
                                          fs::absolute("cli/tug-lab").string()})),
      AllOf(StartsWith(archive), HasSubstr(" libraries, "),
            HasSubstr(absl::StrCat("with glibc ", floor))));
  fs::create_directory(Path("root"));
  ASSERT_EQ(Output(RunProgram("/bin/tar", {"-xf", archive, "-C", Path("root")})), "");
  EXPECT_TRUE(fs::exists(Path("root/tug/share/doc/tug/LICENSE")));
  EXPECT_THAT(ReadText(Path("root/tug/share/doc/tug/tug.spdx")),
              AllOf(StartsWith("SPDXVersion: SPDX-2.3\n"), HasSubstr("PackageName: libzmq5\n")));

  const Process& version = RunThere({"--version"});
  if (version.exit_code() == kNotPermitted) GTEST_SKIP() << "skipped: " << version.err();
  EXPECT_EQ(Output(version), Output(Run({"--version"})));
  EXPECT_THAT(Output(RunThere({"--help"})), HasSubstr("Subcommands:"));
  EXPECT_THAT(Output(RunThere({"bench", "--help"})), HasSubstr("push-pull"));

  // `tug train` starts the bundle's own processes; they give the same bits as the built tug.
  for (const char* name : {"job.textproto", "text.txt"}) {
    fs::copy_file(Path(name), Path(absl::StrCat("root/", name)));
  }
  Output(RunThere({"train", "/job.textproto", "--run-dir", "/run"}));
  Train("run");
  ExpectSameState(Path("run"), Path("root/run"));
}

// Plain tar unpacks it, without an option for the compressor's window size.
TEST_F(BundleTest, IsUnpackedByPlainTar) {
  for (const std::string kind : {"xz", "zst"}) {
    const std::string archive = Path(absl::StrCat("true.tar.", kind));
    Output(RunProgram("deploy/bundle", {archive, "--programs", "/bin/true"}));
    fs::create_directory(Path(kind));
    Output(RunProgram("/bin/tar", {"-xf", archive, "-C", Path(kind)}));
    Output(RunProgram(Path(absl::StrCat(kind, "/tug/bin/true")), {}));
  }
}

TEST_F(BundleTest, NamesTheCompressorThatIsNotThere) {
  for (const char* program : {"bash", "dirname", "realpath"}) {
    fs::create_symlink(absl::StrCat("/usr/bin/", program), Path(program));
  }
  const std::string path = getenv("PATH");
  setenv("PATH", Path("").c_str(), 1);
  const Process& process =
      RunProgram("deploy/bundle", {Path("tug.tar.zst"), "--programs", "/bin/true"});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(process.exit_code(), 1);
  EXPECT_THAT(process.err(), HasSubstr("tug.tar.zst: needs zstd, which is not installed"));
}

TEST_F(BundleTest, SaysInOneLineWhatIsWrong) {
  struct {
    Texts arguments;
    std::string error;
  } const cases[] = {
      {{}, "usage: deploy/bundle FILE"},
      {{Path("tug.zip")}, "tug.zip: the name must end in .tar.xz, .tar.zst or .tar"},
      {{Path("none/tug.tar")}, "none/tug.tar: no such folder"},
      {{Path("tug.tar"), "--programs"}, "--programs needs at least one program"},
      {{Path("tug.tar"), "--programs", "none"}, "none: no such program"},
  };
  for (const auto& [arguments, error] : cases) {
    const Process& process = RunProgram("deploy/bundle", arguments);
    EXPECT_EQ(process.exit_code(), 1);
    EXPECT_THAT(process.err(), AllOf(StartsWith("deploy/bundle: "), HasSubstr(error)));
    EXPECT_EQ(process.err().find('\n'), process.err().size() - 1) << process.err();
  }
  EXPECT_FALSE(fs::exists(Path("tug.tar")));
}

}  // namespace
}  // namespace tug
