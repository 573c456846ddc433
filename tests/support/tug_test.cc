// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tug_test.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/stop_wishes.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/observe/run_folder.h"
#include "gmock/gmock.h"
#include "lab/experiment/training_text.h"
#include "tests/support/run_result.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kTextSeed = 1865;
constexpr size_t kTextBytes = 200'000;
constexpr size_t kLinesBytes = 20'000;

constexpr char kJob[] = R"(
name: "tiny"
cluster { servers: 2 workers: 2 virtual_workers: 2 compute_threads: 1 }
data { path: "text.txt" }
model { layers: 2 width: 32 heads: 2 context: 32 dropout: 0.1 }
train { steps: 50 global_batch: 4 eval_interval: 20 eval_samples: 16 }
optimizer { warmup_steps: 5 decay_steps: 1000 clip: GLOBAL clip_norm: 0.5 }
comm { segment_elements: 4096 partition_bytes: 16384 }
checkpoint { interval: 25 }
fault { heartbeat_ms: 20 }
device: CPU
)";

std::string NewId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

std::string FreshFolder() {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = absl::StrCat(test.test_suite_name(), ".", test.name());
  for (char& c : name) {
    if (c == '/') c = '.';
  }
  const fs::path folder = fs::absolute(fs::path(::testing::TempDir()) / name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder.string();
}

// Complete sentences of a text, each preceded by its second word and a tab.
std::string LinesOf(absl::string_view text) {
  std::vector<std::string> sentences = absl::StrSplit(text, '\n');
  sentences.pop_back();
  std::string lines;
  for (const std::string& sentence : sentences) {
    const std::vector<std::string> words = absl::StrSplit(sentence, ' ');
    absl::StrAppend(&lines, words[1], "\t", sentence, "\n");
  }
  return lines;
}

std::vector<std::string> ErrorLines(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "tug: error:")) lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

Texts operator+(Texts a, const Texts& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Texts Set(const Texts& assignments) {
  Texts arguments;
  for (const std::string& text : assignments) {
    arguments.push_back("--set");
    arguments.push_back(text);
  }
  return arguments;
}

TugTest::TugTest() : test_id_(NewId()), folder_(FreshFolder()) {
  const std::string text = TrainingText(kTextSeed, kTextBytes);
  Write("text.txt", text);
  Write("lines.txt", LinesOf(absl::string_view(text).substr(0, kLinesBytes)));
  Write("job.textproto", kJob);
}

TugTest::~TugTest() {
  for (const FoundProcess& process : FindProcesses(test_id_)) kill(process.pid, SIGKILL);
  processes_.clear();
  std::error_code ignored;
  if (!HasFailure()) fs::remove_all(folder_, ignored);
}

void TugTest::TearDown() {
  ExpectNobodyLeft();
  if (!HasFailure()) return;
  for (const auto& process : processes_) {
    std::cout << "---- " << process->command() << " ----\n"
              << process->out() << process->err() << std::endl;
  }
}

void TugTest::Write(const std::string& name, const std::string& text) const {
  std::ofstream(Path(name), std::ios::binary) << text;
}

Process& TugTest::Start(const std::string& program, ProcessOptions options) {
  options.argv.insert(options.argv.begin(), fs::absolute(program).string());
  options.working_dir = folder_;
  options.output_path = Path(absl::StrCat("process-", processes_.size()));
  options.test_id = test_id_;
  options.environment = environment_;
  processes_.push_back(std::make_unique<Process>(options));
  return *processes_.back();
}

Process& TugTest::Start(const Texts& arguments) {
  ProcessOptions options;
  options.argv = arguments;
  return Start(kTug, std::move(options));
}

Process& TugTest::StartProgram(const std::string& program, const Texts& arguments) {
  ProcessOptions options;
  options.argv = arguments;
  return Start(program, std::move(options));
}

Process& TugTest::StartOn(int output_fd, const Texts& arguments) {
  ProcessOptions options;
  options.argv = arguments;
  options.output_fd = output_fd;
  return Start(kTug, std::move(options));
}

Process& TugTest::StartLimited(const Texts& arguments, int resource, uint64_t limit) {
  ProcessOptions options;
  options.argv = arguments;
  options.limits = {{resource, limit}};
  return Start(kTug, std::move(options));
}

bool TugTest::GiveWallClockAhead() {
  if (!GiveOwnWallClock()) return false;
  environment_.push_back("TUG_TEST_CLOCK_AHEAD=1");
  return true;
}

bool TugTest::GiveOwnWallClock() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;  // the sanitizer's library must be loaded first
#else
  environment_ = {absl::StrCat("LD_PRELOAD=", fs::absolute("tests/support/wall_clock.so").string()),
                  absl::StrCat("TUG_TEST_CLOCK_BACK=", Path(kWallClockBack))};
  return true;
#endif
}

FileDescriptor TugTest::PipeOf(const std::string& text) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const FileDescriptor write_end(ends[1]);
  EXPECT_EQ(write(write_end.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return FileDescriptor(ends[0]);
}

Process& TugTest::StartIgnoring(int signal, const Texts& arguments) {
  ProcessOptions options;
  options.argv = arguments;
  options.ignored_signals = {signal};
  return Start(kTug, std::move(options));
}

Process& TugTest::Run(const Texts& arguments) {
  Process& process = Start(arguments);
  EXPECT_TRUE(process.WaitForEnd(After(kPatience))) << process.command() << " does not end";
  return process;
}

Process& TugTest::StartTraining(const std::string& run, const Texts& settings, const Texts& more) {
  return Start(TrainArguments(run, settings, more));
}

Texts TugTest::TrainArguments(const std::string& run, const Texts& settings,
                              const Texts& more) const {
  return Texts{"train", job(), "--run-dir", Path(run)} + Set(settings) + more;
}

void TugTest::Train(const std::string& run, const Texts& settings, const Texts& more) {
  Process& process = StartTraining(run, settings, more);
  ASSERT_TRUE(process.WaitForEnd(After(kPatience))) << process.command() << " does not end";
  ASSERT_EQ(process.exit_code(), 0) << process.command() << "\n" << process.err();
}

std::vector<pid_t> TugTest::Pids(const std::string& subcommand) const {
  std::vector<pid_t> pids;
  for (const FoundProcess& process : FindProcesses(test_id_)) {
    if (process.argv.size() > 1 && process.argv[1] == subcommand) pids.push_back(process.pid);
  }
  return pids;
}

void TugTest::ExpectNobodyLeft() const {
  const absl::Time deadline = After(absl::Seconds(2));
  std::vector<FoundProcess> left = FindProcesses(test_id_);
  while (!left.empty() && absl::Now() < deadline) left = FindProcesses(test_id_);
  for (const FoundProcess& process : left) {
    ADD_FAILURE() << "process " << process.pid
                  << " is left: " << ::testing::PrintToString(process.argv);
  }
}

void TugTest::ExpectErrorLine(const Process& process, const Texts& parts) {
  SCOPED_TRACE(process.command());
  ASSERT_TRUE(process.ended());
  EXPECT_NE(process.exit_code(), 0);
  EXPECT_LT(process.exit_code(), 128) << "killed by a signal";
  const std::vector<std::string> lines = ErrorLines(process.err());
  ASSERT_EQ(lines.size(), 1u) << process.err();
  for (const std::string& part : parts) EXPECT_THAT(lines[0], ::testing::HasSubstr(part));
}

Texts TugTest::Endless() {
  return {"train.steps=100000000", "checkpoint.interval=100", "train.eval_interval=1000000"};
}

uint64_t TugTest::NewestCheckpoint(const std::string& run) const {
  const absl::StatusOr<FoundCheckpoint> newest = FindCheckpoint(Path(run));
  return newest.ok() ? newest->manifest.version() : 0;
}

void TugTest::WaitForCheckpoint(Process& process, const std::string& run) const {
  // A step line after the checkpoint line: the coordinator has counted the checkpoint.
  const auto counted = [&] {
    const std::string metrics = ReadText(Path(run) + "/metrics.jsonl");
    const size_t checkpoint = metrics.find("\"kind\":\"checkpoint\"");
    return checkpoint != std::string::npos &&
           metrics.find("\"kind\":\"step\"", checkpoint) != std::string::npos;
  };
  ASSERT_TRUE(process.WaitUntil(counted, After(kPatience))) << "no checkpoint: " << process.err();
  ASSERT_FALSE(process.ended()) << process.err();
}

void TugTest::WaitForSteps(Process& process, const std::string& run, uint64_t steps) const {
  const auto reached = [&] {
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    return losses.ok() && !losses->training.empty() && losses->training.rbegin()->first >= steps;
  };
  ASSERT_TRUE(process.WaitUntil(reached, After(kPatience))) << "no steps: " << process.err();
}

bool TugTest::EndsWhenAskedAgain(Process& process, int signal) {
  const absl::Time deadline = After(kPatience);
  while (!process.WaitForEnd(After(StopWishes::kApart + absl::Milliseconds(100)))) {
    if (absl::Now() > deadline) return false;
    process.Signal(signal);
  }
  return true;
}

void TugTest::ExpectAWorkerIsReplaced(Process& process, const std::string& run) const {
  const std::vector<pid_t> workers = Pids("worker");
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[0], SIGKILL);
  const auto replaced = [&] {
    return absl::StrContains(process.err(), "(Killed): starting a replacement") &&
           Pids("worker").size() == 2;
  };
  ASSERT_TRUE(process.WaitUntil(replaced, After(kPatience))) << process.out() << process.err();
  const uint64_t step = ReadLosses(Path(run))->training.rbegin()->first;
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(process, run, step + 5));
}

void TugTest::EndInOrder(Process& process) const {
  process.Signal(SIGINT);
  ASSERT_TRUE(process.WaitForEnd(After(kPatience))) << process.out() << process.err();
  EXPECT_EQ(process.exit_code(), 0) << process.err();
}

void TugTest::ExpectOrderlyEnd(const Process& process, const std::string& run) const {
  EXPECT_THAT(process.err(), ::testing::HasSubstr("stopped:"));
  EXPECT_THAT(process.err(), ::testing::HasSubstr("--resume"));
  ExpectEndsWithCheckpoint(process, run);
}

void TugTest::ExpectEndsWithCheckpoint(const Process& process, const std::string& run) const {
  EXPECT_EQ(process.exit_code(), 0) << process.err();
  const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
  ASSERT_TRUE(losses.ok()) << losses.status();
  EXPECT_EQ(losses->training.rbegin()->first, NewestCheckpoint(run));
  ExpectNobodyLeft();
}

void TugTest::ExpectUndisturbedState(const std::string& run) {
  const absl::StatusOr<CheckpointState> state = ReadState(Path(run));
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_NO_FATAL_FAILURE(Train(
      "undisturbed", {absl::StrCat("train.steps=", state->version), "checkpoint.interval=0"}));
  ExpectSameState(Path("undisturbed"), Path(run));
}

void TugTest::ExpectResumes(const std::string& run, const Texts& settings) {
  const uint64_t from = NewestCheckpoint(run);
  ASSERT_GT(from, 0u);
  const Texts short_run =
      Texts{absl::StrCat("train.steps=", from + 20), "checkpoint.interval=0"} + settings;
  const Process& resumed = Run(Texts{"train", job(), "--resume", Path(run)} + Set(short_run));
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err();
  EXPECT_THAT(resumed.err(), ::testing::HasSubstr(absl::StrCat("from step ", from)));
  ASSERT_NO_FATAL_FAILURE(Train("undisturbed", short_run));
  ExpectSameState(Path("undisturbed"), Path(run));
}

void DaemonTest::StartCoordinator(const Texts& settings) {
  coordinator_ =
      &Start(Texts{"coordinator", job(), "--listen", "127.0.0.1:0", "--run-dir", Path("run")} +
             Set(settings));
  const auto listens = [this] {
    const absl::StatusOr<CoordinatorAddress> address = ReadCoordinatorAddress(Path("run"));
    if (address.ok()) address_ = address->address;
    return address.ok();
  };
  ASSERT_TRUE(coordinator_->WaitUntil(listens, After(kPatience))) << coordinator_->err();
}

void DaemonTest::StartServers(int count) {
  for (int i = 0; i < count; ++i) {
    nodes_.push_back(&Start(Texts{"server", "--coordinator", address_}));
  }
}

void DaemonTest::StartWorkers(int count, const Texts& more) {
  for (int i = 0; i < count; ++i) {
    nodes_.push_back(&Start(Texts{"worker", "--coordinator", address_} + more));
  }
}

void DaemonTest::StartJob(const Texts& settings) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator(settings));
  StartServers(2);
  StartWorkers(2);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(*coordinator_, "run", 5));
}

}  // namespace tug
