#ifndef TUG_TESTS_TUG_TEST_H_
#define TUG_TESTS_TUG_TEST_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "gtest/gtest.h"
#include "tests/tug_process.h"

namespace tug {

// More than any step of a test needs, on two busy cores of a slow machine and with a sanitizer.
inline constexpr absl::Duration kPatience = absl::Seconds(180);

// The `ip` command, with which tests take links down.
inline constexpr char kIp[] = "/usr/sbin/ip";

inline absl::Time After(absl::Duration duration) { return absl::Now() + duration; }

using Texts = std::vector<std::string>;
Texts operator+(Texts a, const Texts& b);
// --set a=1 --set b=2
Texts Set(const Texts& assignments);

inline constexpr char kTug[] = "cli/tug";  // in the runfiles

// Of a parameterised test: a name, and what the job has set.
struct Kind {
  const char* name;
  Texts settings;
};
inline std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }
inline std::string NameOfKind(const ::testing::TestParamInfo<Kind>& info) {
  return info.param.name;
}

// One test's place: an empty folder with a text, lines of two sides (lines.txt: an adjective, a
// tab, a sentence with it) and a tiny job, and processes of `tug` that work in it. At its end no
// process is left, or the test fails.
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

  // Starts `tug arguments...` in the folder. The process lives as long as the test.
  Process& Start(const Texts& arguments);
  Process& StartOn(int output_fd, const Texts& arguments);  // stdout and stderr; not owned
  // RLIMIT_FSIZE and its like.
  Process& StartLimited(const Texts& arguments, int resource, uint64_t limit);
  // Processes that are started from here on have a wall clock that SetWallClockBack sets back by an
  // hour (tests/wall_clock.cc). False: not with this sanitizer.
  bool GiveOwnWallClock();
  // The same with one that is an hour ahead of the kernel's: who lets the kernel wait until some
  // time of the wall clock waits as if that were set back by an hour.
  bool GiveWallClockAhead();
  void SetWallClockBack() const { Write(kWallClockBack, ""); }
  // A pipe that gives `text` once, as a shell's <(...) does: its end to read, as /dev/fd/N, which
  // processes inherit.
  static FileDescriptor PipeOf(const std::string& text);
  // With a signal ignored, as nohup does with SIGHUP.
  Process& StartIgnoring(int signal, const Texts& arguments);
  // The same of another program: a path in the runfiles, such as "deploy/examples/least_squares".
  Process& StartProgram(const std::string& program, const Texts& arguments);
  // Starts, and waits until it has ended or kPatience is over, which fails the test.
  Process& Run(const Texts& arguments);

  // `tug train` of the job in run folder Path(run).
  Process& StartTraining(const std::string& run, const Texts& settings, const Texts& more = {});
  Texts TrainArguments(const std::string& run, const Texts& settings, const Texts& more = {}) const;
  // To a good end.
  void Train(const std::string& run, const Texts& settings = {}, const Texts& more = {});

  // By which the test's processes are found (tests/tug_process.h).
  const std::string& test_id() const { return test_id_; }
  // Process ids of the test's living processes of a subcommand: "server", "worker", ...
  std::vector<pid_t> Pids(const std::string& subcommand) const;

  // Living processes are given a moment to go, since a killed one takes one to die.
  void ExpectNobodyLeft() const;
  // Ended, not by a signal, with an error whose one line has all of `parts`.
  static void ExpectErrorLine(const Process& process, const Texts& parts);

  // Set to 100 million steps, so that a job lasts until it is ended.
  static Texts Endless();
  // Newest complete checkpoint of a run; 0 = none.
  uint64_t NewestCheckpoint(const std::string& run) const;
  void WaitForCheckpoint(Process& process, const std::string& run) const;
  void WaitForSteps(Process& process, const std::string& run, uint64_t steps) const;

  // Asks a second time to end at once: with signals a second apart, until one counts as another
  // wish (base/stop_wishes.h). False: it goes on.
  static bool EndsWhenAskedAgain(Process& process, int signal);
  // Kills one of two workers of an endless job, and waits until another one is started in its place
  // and the job goes on.
  void ExpectAWorkerIsReplaced(Process& process, const std::string& run) const;
  // Interrupts it, and waits for its end.
  void EndInOrder(Process& process) const;
  // The job of Path(run) ended in order: exit code 0, every step it made is in its newest
  // checkpoint, nobody is left.
  void ExpectOrderlyEnd(const Process& process, const std::string& run) const;
  void ExpectEndsWithCheckpoint(const Process& process, const std::string& run) const;
  // The job of Path(run) has the state of one of as many steps that nothing befell.
  void ExpectUndisturbedState(const std::string& run);
  // It continues to 20 steps more, with the bits of a run that was never ended.
  void ExpectResumes(const std::string& run, const Texts& settings = {});

 private:
  static constexpr char kWallClockBack[] = "wall_clock_set_back";

  Process& Start(const std::string& program, ProcessOptions options);

  const std::string test_id_;
  const std::string folder_;
  Texts environment_;  // ProcessOptions::environment
  std::vector<std::unique_ptr<Process>> processes_;
};

// A job by hand: a coordinator at a free port of 127.0.0.1, servers and workers that know only its
// address.
class DaemonTest : public TugTest {
 protected:
  // Run folder: Path("run"). Returns when the coordinator listens.
  void StartCoordinator(const Texts& settings);
  void StartServers(int count);
  void StartWorkers(int count, const Texts& more = {});
  // All of the job, and waits until it has done some steps.
  void StartJob(const Texts& settings);

  const std::string& address() const { return address_; }
  Process& coordinator() { return *coordinator_; }
  std::vector<Process*> nodes_;

 private:
  Process* coordinator_ = nullptr;
  std::string address_;
};

}  // namespace tug

#endif  // TUG_TESTS_TUG_TEST_H_
