// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TESTS_SUPPORT_TUG_TEST_H_
#define TUG_TESTS_SUPPORT_TUG_TEST_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "gtest/gtest.h"
#include "tests/support/tug_process.h"

namespace tug {

// Timeout longer than any step of a test, on two busy cores of a slow machine with a sanitizer.
inline constexpr absl::Duration kPatience = absl::Seconds(180);

// The `ip` command, which tests use to take links down.
inline constexpr char kIp[] = "/usr/sbin/ip";

inline absl::Time After(absl::Duration duration) { return absl::Now() + duration; }

using Texts = std::vector<std::string>;
Texts operator+(Texts a, const Texts& b);
// --set a=1 --set b=2
Texts Set(const Texts& assignments);

inline constexpr char kTug[] = "cli/tug";  // in the runfiles

// Parameter of a test: a name, and settings of the job.
struct Kind {
  const char* name;
  Texts settings;
};
inline std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }
inline std::string NameOfKind(const ::testing::TestParamInfo<Kind>& info) {
  return info.param.name;
}

// Fixture: an empty folder with a text, labelled lines (lines.txt: an adjective, a tab, a sentence
// that contains it) and a tiny job, and `tug` processes that run in it. The test fails if a process
// is left at its end.
class TugTest : public ::testing::Test {
 protected:
  TugTest();
  ~TugTest() override;
  void TearDown() override;

  // Absolute path of a name in the test's folder.
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const;

  // job.textproto: 50 steps, 2 servers, 2 workers, checkpoints at 25 and 50, clipping and dropout
  // on; 11 segments of 4,096 elements and one of 64.
  std::string job() const { return Path("job.textproto"); }

  // Starts `tug arguments...` in the folder. The Process lives as long as the test.
  Process& Start(const Texts& arguments);
  Process& StartOn(int output_fd, const Texts& arguments);  // stdout and stderr; not owned
  // Starts with a limit such as RLIMIT_FSIZE.
  Process& StartLimited(const Texts& arguments, int resource, uint64_t limit);
  // Processes started from now on have a wall clock that SetWallClockBack sets back by an hour
  // (tests/support/wall_clock.cc). False: not supported with this sanitizer.
  bool GiveOwnWallClock();
  // Also sets their wall clock an hour ahead of the kernel's: a process that passes an absolute
  // wall clock time to the kernel waits as long as if the clock had been set back by an hour.
  bool GiveWallClockAhead();
  void SetWallClockBack() const { Write(kWallClockBack, ""); }
  // A pipe that delivers `text` once, like a shell's <(...). Returns its read end, which processes
  // inherit as /dev/fd/N.
  static FileDescriptor PipeOf(const std::string& text);
  // Starts with a signal ignored, as nohup does with SIGHUP.
  Process& StartIgnoring(int signal, const Texts& arguments);
  // Starts another program: a path in the runfiles, such as "deploy/examples/least_squares".
  Process& StartProgram(const std::string& program, const Texts& arguments);
  // Starts a process and waits for its end; fails the test after kPatience.
  Process& Run(const Texts& arguments);

  // Starts `tug train` for the job, with run folder Path(run).
  Process& StartTraining(const std::string& run, const Texts& settings, const Texts& more = {});
  Texts TrainArguments(const std::string& run, const Texts& settings, const Texts& more = {}) const;
  // Trains to the end and expects exit code 0.
  void Train(const std::string& run, const Texts& settings = {}, const Texts& more = {});

  // Identifies the test's processes (tests/support/tug_process.h).
  const std::string& test_id() const { return test_id_; }
  // Process ids of the test's living processes of a subcommand: "server", "worker", ...
  std::vector<pid_t> Pids(const std::string& subcommand) const;

  // Waits a moment for processes to exit, since a killed one takes time to die.
  void ExpectNobodyLeft() const;
  // Expects an error exit, not by a signal, with one error line that contains all of `parts`.
  static void ExpectErrorLine(const Process& process, const Texts& parts);

  // Settings for 100 million steps, so that a job runs until it is ended.
  static Texts Endless();
  // Newest complete checkpoint of a run; 0 = none.
  uint64_t NewestCheckpoint(const std::string& run) const;
  void WaitForCheckpoint(Process& process, const std::string& run) const;
  void WaitForSteps(Process& process, const std::string& run, uint64_t steps) const;

  // Requests an immediate end: repeats the signal, more than StopWishes::kApart apart, until one
  // counts as another request (base/stop_wishes.h). False: the process keeps running.
  static bool EndsWhenAskedAgain(Process& process, int signal);
  // Kills one of two workers of an endless job, and waits until a replacement runs and the job
  // makes progress.
  void ExpectAWorkerIsReplaced(Process& process, const std::string& run) const;
  // Interrupts the process and waits for its end.
  void EndInOrder(Process& process) const;
  // The job of Path(run) ended in order: exit code 0, its newest checkpoint includes every step, no
  // process is left.
  void ExpectOrderlyEnd(const Process& process, const std::string& run) const;
  void ExpectEndsWithCheckpoint(const Process& process, const std::string& run) const;
  // The job of Path(run) has the same state as an undisturbed run of as many steps.
  void ExpectUndisturbedState(const std::string& run);
  // Resumes the job for 20 more steps, and expects the bits of an uninterrupted run.
  void ExpectResumes(const std::string& run, const Texts& settings = {});

 private:
  static constexpr char kWallClockBack[] = "wall_clock_set_back";

  Process& Start(const std::string& program, ProcessOptions options);

  const std::string test_id_;
  const std::string folder_;
  Texts environment_;  // ProcessOptions::environment
  std::vector<std::unique_ptr<Process>> processes_;
};

// A job of separate daemons: a coordinator at a free port of 127.0.0.1, and servers and workers
// that know only its address.
class DaemonTest : public TugTest {
 protected:
  // Uses run folder Path("run"). Returns when the coordinator listens.
  void StartCoordinator(const Texts& settings);
  void StartServers(int count);
  void StartWorkers(int count, const Texts& more = {});
  // Starts the whole job and waits until it has done some steps.
  void StartJob(const Texts& settings);

  const std::string& address() const { return address_; }
  Process& coordinator() { return *coordinator_; }
  std::vector<Process*> nodes_;

 private:
  Process* coordinator_ = nullptr;
  std::string address_;
};

}  // namespace tug

#endif  // TUG_TESTS_SUPPORT_TUG_TEST_H_
