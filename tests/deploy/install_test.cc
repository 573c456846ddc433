// SPDX-License-Identifier: Apache-2.0
// deploy/install: a program of one's own builds against the installed library, by pkg-config and by
// CMake, and trains with the installed tug.

#include <filesystem>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/observe/run_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kPkgConfig[] = "/usr/bin/pkg-config";
constexpr char kCmake[] = "/usr/bin/cmake";
constexpr char kExample[] = "deploy/examples/least_squares.c";

class InstallTest : public TugTest {
 protected:
  std::string Output(const std::string& program, const Texts& arguments) {
    Process& process = StartProgram(program, arguments);
    EXPECT_TRUE(process.WaitForEnd(After(kPatience))) << process.command() << " does not end";
    EXPECT_EQ(process.exit_code(), 0) << process.command() << "\n"
                                      << process.out() << process.err();
    return process.out();
  }
  void Install() {
    EXPECT_THAT(Output("deploy/install", {Path("there"), "--from", fs::absolute(".").string()}),
                HasSubstr("installed tug "));
    // The folder can be moved.
    fs::rename(Path("there"), Path("tugboat"));
  }
  // Runs the example's job with two workers: `program` in the installed folder's environment.
  void ExpectTrains(const std::string& program) {
    const std::string tug = Path("tugboat/bin/tug");
    Process& coordinator =
        StartProgram(tug, {"coordinator", fs::absolute("deploy/examples/least_squares.textproto"),
                           "--listen", "127.0.0.1:0", "--run-dir", Path("run")});
    ASSERT_TRUE(coordinator.WaitUntil([&] { return ReadCoordinatorAddress(Path("run")).ok(); },
                                      After(kPatience)));
    const std::string address = ReadCoordinatorAddress(Path("run"))->address;
    StartProgram(tug, {"server", "--coordinator", address});
    Process& worker = StartProgram(program, {address});
    StartProgram(program, {address});
    ASSERT_TRUE(coordinator.WaitForEnd(After(kPatience))) << coordinator.err();
    EXPECT_EQ(coordinator.exit_code(), 0) << coordinator.err();
    ASSERT_TRUE(worker.WaitForEnd(After(kPatience))) << worker.err();
    EXPECT_EQ(worker.exit_code(), 0) << worker.err();
  }
};

TEST_F(InstallTest, AProgramBuildsByPkgConfigAndTrains) {
  if (!fs::exists(kPkgConfig)) {
    GTEST_SKIP() << "skipped: no pkg-config; deploy/setup --tests installs it";
  }
  Install();
  const std::string folder = Path("tugboat/lib/pkgconfig/tug.pc");
  const std::string flags = Output(kPkgConfig, {"--cflags", "--libs", folder});
  Texts arguments = {"-std=c99", fs::absolute(kExample),
                     "-o",       Path("least_squares"),
                     "-lm",      absl::StrCat("-Wl,-rpath,", Path("tugboat/lib"))};
  for (const absl::string_view flag :
       absl::StrSplit(absl::StripAsciiWhitespace(flags), ' ', absl::SkipEmpty())) {
    arguments.emplace_back(flag);
  }
  Output("/usr/bin/gcc", arguments);
  ExpectTrains(Path("least_squares"));
}

TEST_F(InstallTest, AProgramBuildsByCmake) {
  if (!fs::exists(kCmake)) GTEST_SKIP() << "skipped: no cmake; deploy/setup --tests installs it";
  Install();
  Write("CMakeLists.txt", absl::StrCat("cmake_minimum_required(VERSION 3.18)\n"
                                       "project(mine C)\n"
                                       "find_package(tug 0.1 REQUIRED)\n"
                                       "add_executable(mine ",
                                       fs::absolute(kExample).string(),
                                       ")\n"
                                       "target_link_libraries(mine PRIVATE tug::tug m)\n"));
  const std::string build = Path("build");
  Output(kCmake, {"-S", Path(""), "-B", build, "-DCMAKE_PREFIX_PATH=" + Path("tugboat")});
  Output(kCmake, {"--build", build});
  Process& program = StartProgram(absl::StrCat(build, "/mine"), {"127.0.0.1:1"});
  ASSERT_TRUE(program.WaitForEnd(After(kPatience)));
  EXPECT_THAT(program.err(), HasSubstr("cannot reach the coordinator"));
}

TEST_F(InstallTest, LeavesWhatItSaysBelowTheFolder) {
  Output("deploy/install", {"/usr", "--destdir", Path("root"), "--libdir", "lib/here", "--from",
                            fs::absolute(".").string()});
  for (const char* file : {"bin/tug", "lib/here/libtug.so.0", "lib/here/libtug.so", "include/tug.h",
                           "lib/here/pkgconfig/tug.pc", "lib/here/cmake/tug/tugConfig.cmake",
                           "share/man/man1/tug.1.gz", "share/man/man5/tug-job.5.gz",
                           "share/bash-completion/completions/tug", "share/zsh/site-functions/_tug",
                           "share/tug/jobs/quickstart.textproto", "share/doc/tug/LICENSE"}) {
    EXPECT_TRUE(fs::exists(Path(absl::StrCat("root/usr/", file)))) << file;
  }
  EXPECT_THAT(Output("/usr/bin/readelf", {"-dW", Path("root/usr/lib/here/libtug.so")}),
              HasSubstr("soname: [libtug.so.0]"));
}

}  // namespace
}  // namespace tug
