// SPDX-License-Identifier: Apache-2.0
// deploy/gpu_report on a machine with a fake GPU: its table for programs that pass, fail, are
// skipped or hang, and its search for the toolkit's libraries.

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class GpuReportTest : public TugTest {
 protected:
  GpuReportTest() {
    fs::create_directory(Path("bin"));
    fs::create_directories(Path("share/tug/compare"));
    fs::create_directories(Path("share/tug/training"));
    fs::copy_file("deploy/gpu_report", Path("bin/gpu_report"));
    fs::copy_file("deploy/gpu_training/train", Path("share/tug/training/train"));
    Program("nvidia-smi", "echo 'GPU of the test, 9.0, 80 GiB, 580'");
    // Two of the 12 steps are measured.
    Program("tug",
            "[[ $1 == train ]] || { echo tug 0.1.0; exit; }; echo step 1; echo done; [[ $5 == "
            "--run-dir ]] || exit 2; mkdir -p $6\n"
            "for ((i = 0; i < 12; ++i)); do echo '{\"kind\":\"step\",\"tokens\":1000,"
            "\"seconds\":0.5,\"wait_seconds\":4e-2}'; done >$6/metrics.jsonl");
    Program("../share/tug/training/offload", "echo page >$TUG_REPORT_FOLDER/offload.html");
    Program("add_cuda_test", "echo '[  PASSED  ] 4 tests.'; echo $TUG_REQUIRE_GPU >required");
    Program("add_benchmark", "echo 'add 12.0 us 100.0%'");
    Program("../share/tug/compare/gpu", "echo 'skipped: PyTorch 2.3: none'; echo 'tokens/s 12.0'");
    setenv("CUDA_HOME", Path("none").c_str(), 1);
    setenv("PATH", absl::StrCat(Path("bin"), ":/usr/bin:/bin").c_str(), 1);
  }
  // Writes a program of the bundle, in bash.
  void Program(const std::string& name, const std::string& body) {
    const std::string path = absl::StrCat("bin/", name);
    Write(path, absl::StrCat("#!/bin/bash\n", body, "\n"));
    fs::permissions(Path(path), fs::perms::owner_all);
  }
  // Makes programs need two libraries that the machine's loader does not find.
  void NeedTwoLibraries() {
    Program("ldd", absl::StrCat("for name in libone.so.13 libtwo.so.2; do [[ -e ", Path("lib/tug/"),
                                "$name ]] || echo $'\\t'$name' => not found'; done; exit 1"));
  }
  const Process& Report() {
    Process& process = StartProgram(Path("bin/gpu_report"), {Path("report")});
    EXPECT_TRUE(process.WaitForEnd(After(kPatience)));
    return process;
  }
  std::string Table() const { return ReadText(Path("report/report.md")); }
};

TEST_F(GpuReportTest, ListsWhatPassedWithTheTablesOfBenchmarks) {
  const Process& process = Report();
  EXPECT_EQ(process.exit_code(), 0) << process.err();
  EXPECT_THAT(
      Table(),
      AllOf(HasSubstr("# Tugboat's kernels on GPU of the test, 9.0"),
            HasSubstr("| tests | add_cuda_test | 4 passed | "),
            HasSubstr("| benchmarks | add_benchmark | done | "),
            HasSubstr("| training | train | exposed communication at most 8.0% of a step | "),
            HasSubstr("| offload | offload | done | "),
            HasSubstr("(goal: under 10%), 500.0 ms per step, 2000 tokens/s\n```"),
            HasSubstr("| compare | gpu | skipped: PyTorch 2.3 | "),
            HasSubstr("```\nadd 12.0 us 100.0%\n```"), HasSubstr("tokens/s 12.0\n```")));
  EXPECT_EQ(ReadText(Path("required")), "1\n");  // TUG_REQUIRE_GPU
  EXPECT_EQ(ReadText(Path("report/offload.html")), "page\n");
}

TEST_F(GpuReportTest, FailsWithATrainingThatFails) {
  Program("tug", "[[ $1 == train ]] || exit 0; echo 'tug: error: no GPU'; exit 1");
  EXPECT_EQ(Report().exit_code(), 1);
  EXPECT_THAT(Table(), AllOf(HasSubstr("| training | train | FAILED (1): done | "),
                             HasSubstr("tug: error: no GPU\n```")));
}

TEST_F(GpuReportTest, FailsWithAFailingTestAndGoesOn) {
  Program("a_cuda_test",
          "echo '[  PASSED  ] 1 test.'; echo '[  FAILED  ] 2 tests, listed below:'; exit 1");
  EXPECT_EQ(Report().exit_code(), 1);
  EXPECT_THAT(Table(), AllOf(HasSubstr("| tests | a_cuda_test | FAILED (1): 1 passed, 2 failed | "),
                             HasSubstr("| tests | add_cuda_test | 4 passed | ")));
}

// Benchmarks may be cut off: the report looks for kernels that hang.
TEST_F(GpuReportTest, FailsWithATestThatDoesNotEnd) {
  Program("timeout", "shift 2; [[ $1 != *slow* ]] || exit 124; exec \"$@\"");
  Program("slow_benchmark", "");
  const Process& process = Report();
  EXPECT_EQ(process.exit_code(), 0) << process.err();
  EXPECT_THAT(Table(), HasSubstr("| benchmarks | slow_benchmark | out of time | "));
  Program("slow_cuda_test", "");
  EXPECT_EQ(Report().exit_code(), 1);
  EXPECT_THAT(Table(), AllOf(HasSubstr("| tests | slow_cuda_test | FAILED (124): out of time | "),
                             HasSubstr("| tests | add_cuda_test | 4 passed | ")));
}

TEST_F(GpuReportTest, ListsWhatThisRunSaidAndEveryGpu) {
  Program("nvidia-smi", "echo 'First, 9.0'; echo 'Second, 8.0'");
  fs::create_directory(Path("report"));
  Write("report/benchmarks-old_benchmark.txt", "of an earlier run");
  EXPECT_EQ(Report().exit_code(), 0);
  EXPECT_THAT(Table(), AllOf(HasSubstr("# Tugboat's kernels on First, 9.0; Second, 8.0\n"),
                             Not(HasSubstr("earlier"))));
}

TEST_F(GpuReportTest, RunsTestsUnderTheSanitizer) {
  Program("compute-sanitizer",
          "tool=${*: -2:1}; \"${@: -1}\"; echo \"========= ERROR SUMMARY: 0 errors of $tool\"; "
          "[[ $tool == memcheck ]] || exit 99");
  EXPECT_EQ(Report().exit_code(), 1);
  EXPECT_THAT(
      Table(),
      AllOf(HasSubstr("| memcheck | add_cuda_test | 4 passed, 0 errors of memcheck | "),
            HasSubstr(
                "| racecheck | add_cuda_test | FAILED (99): 4 passed, 0 errors of racecheck | "),
            Not(HasSubstr("no compute-sanitizer"))));
}

TEST_F(GpuReportTest, LinksWhatTheMachineHasOfTheToolkit) {
  NeedTwoLibraries();
  const std::string in_toolkit = Path("none/lib64/libone.so.13");
  const std::string in_package = Path("site/nvidia/two/lib/libtwo.so.2");
  for (const std::string& path : {in_toolkit, in_package}) {
    fs::create_directories(fs::path(path).parent_path());
  }
  Write("none/lib64/libone.so.13.1", "");
  fs::create_symlink("libone.so.13.1", in_toolkit);
  Write("site/nvidia/two/lib/libtwo.so.2", "");
  setenv("PYTHONPATH", Path("site").c_str(), 1);
  const Process& process = Report();
  EXPECT_EQ(process.exit_code(), 0) << process.err();
  EXPECT_EQ(fs::read_symlink(Path("lib/tug/libone.so.13")), fs::canonical(in_toolkit));
  EXPECT_EQ(fs::read_symlink(Path("lib/tug/libtwo.so.2")), fs::canonical(in_package));

  // Without the package, the link dangles.
  fs::remove(in_package);
  EXPECT_EQ(Report().exit_code(), 1);
  unsetenv("PYTHONPATH");
}

TEST_F(GpuReportTest, SaysInOneLineWhichLibrariesAreNowhere) {
  NeedTwoLibraries();
  const Process& process = Report();
  EXPECT_EQ(process.exit_code(), 1);
  EXPECT_THAT(process.err(),
              AllOf(StartsWith("gpu_report: not found: libone.so.13 libtwo.so.2, neither in "),
                    HasSubstr(Path("none")), HasSubstr("unpack here FILE.toolkit.tar.zst too")));
  EXPECT_EQ(process.err().find('\n'), process.err().size() - 1) << process.err();
  EXPECT_FALSE(fs::exists(Path("report")));
}

TEST_F(GpuReportTest, SaysInOneLineThatTugDoesNotStart) {
  Program("tug", "echo 'libc.so.6: version not found' >&2; echo more >&2; exit 1");
  const Process& process = Report();
  EXPECT_EQ(process.exit_code(), 1);
  EXPECT_EQ(process.err(), "gpu_report: tug does not start here: libc.so.6: version not found\n");
}

TEST_F(GpuReportTest, SaysInOneLineThatThereIsNoGpu) {
  Program("nvidia-smi", "echo 'no devices were found'; exit 6");
  const Process& process = Report();
  EXPECT_EQ(process.exit_code(), 1);
  EXPECT_EQ(process.err(), "gpu_report: no GPU here: nvidia-smi: no devices were found\n");
}

}  // namespace
}  // namespace tug
