// SPDX-License-Identifier: Apache-2.0
// exchange/c_api/tug.h with a real coordinator and server: the documented example, and programs
// with mistakes.

#include <signal.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/observe/run_folder.h"
#include "exchange/c_api/tug.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kAddressOnThePage[] = "127.0.0.1:7070";
constexpr char kProgram[] = "deploy/examples/least_squares";
constexpr char kJobFile[] = "deploy/examples/least_squares.textproto";

// Commands of docs/c_api.md that start the example, in order.
std::vector<Texts> CommandsOfThePage() {
  std::vector<Texts> commands;
  for (const absl::string_view line : absl::StrSplit(ReadText("docs/c_api.md"), '\n')) {
    if (absl::StartsWith(line, "tug ") || absl::StartsWith(line, "least_squares ")) {
      if (!absl::StrContains(line, kAddressOnThePage)) continue;
      const Texts words = absl::StrSplit(line, ' ');
      commands.push_back(words);
    }
  }
  return commands;
}

class CApiTest : public DaemonTest {
 protected:
  // Starts a coordinator with the example's job, and its server.
  void StartJob(const Texts& settings) {
    Write("job.textproto", ReadText(kJobFile));
    ASSERT_NO_FATAL_FAILURE(StartCoordinator(settings + Texts{"fault.heartbeat_ms=20"}));
    StartServers(1);
  }
  Process& StartExample(const Texts& more = {}) {
    return StartProgram(kProgram, Texts{address()} + more);
  }
  // Expects an error exit of the example with exactly one line.
  static void ExpectOneLine(const Process& process, const std::string& part) {
    EXPECT_EQ(process.exit_code(), 1) << process.err();
    EXPECT_THAT(process.err(), AllOf(HasSubstr("least_squares: error: "), HasSubstr(part)));
    EXPECT_EQ(process.err().find('\n'), process.err().size() - 1) << process.err();
  }
};

TEST_F(CApiTest, TheExampleOfThePageFindsTheWeights) {
  const std::vector<Texts> commands = CommandsOfThePage();
  ASSERT_EQ(commands.size(), 4u);
  std::string address = "127.0.0.1:0";
  std::vector<Process*> processes;
  for (const Texts& command : commands) {
    Texts arguments;
    for (size_t i = 1; i < command.size(); ++i) {
      const bool is_file = command[i] == kJobFile;
      arguments.push_back(is_file
                              ? fs::absolute(kJobFile).string()
                              : absl::StrReplaceAll(command[i], {{kAddressOnThePage, address}}));
    }
    if (command[0] == "tug") {
      if (processes.empty()) arguments = arguments + Texts{"--run-dir", Path("run")};
      processes.push_back(&Start(arguments));
    } else {
      processes.push_back(&StartProgram(kProgram, arguments));
    }
    if (processes.size() > 1) continue;
    ASSERT_TRUE(processes[0]->WaitUntil([&] { return ReadCoordinatorAddress(Path("run")).ok(); },
                                        After(kPatience)));
    address = ReadCoordinatorAddress(Path("run"))->address;
  }
  for (Process* process : processes) {
    ASSERT_TRUE(process->WaitForEnd(After(kPatience))) << process->command();
    EXPECT_EQ(process->exit_code(), 0) << process->command() << process->err() << process->out();
  }
  EXPECT_THAT(processes[2]->out(), HasSubstr("largest error of a weight 0.0"));
  EXPECT_THAT(processes[2]->out() + processes[3]->out(), HasSubstr("step 250  loss 0.0"));
  EXPECT_THAT(processes[0]->err(),
              AllOf(HasSubstr("done: 300 of 300 steps"), Not(HasSubstr("tug sample"))));

  const auto losses = ReadLosses(Path("run"));
  ASSERT_TRUE(losses.ok()) << losses.status();
  EXPECT_EQ(losses->training.size(), 300u);
  EXPECT_EQ(NewestCheckpoint("run"), 300u);
  EXPECT_THAT(Run({"sample", "--from", Path("run")}).err(), HasSubstr("model.external"));
}

// tug has no worker for such a job: commands that would start one refuse it first.
TEST_F(CApiTest, NoCommandStartsTheWorkersOfAJobOfPrograms) {
  Write("job.textproto", ReadText(kJobFile));
  for (const Texts& command : {Texts{"train"}, Texts{"launch", "--kubernetes"}}) {
    Texts arguments = command;
    arguments.push_back(Path("job.textproto"));
    Process& refused = Start(arguments);
    ASSERT_TRUE(refused.WaitForEnd(After(kPatience)));
    ExpectErrorLine(refused, {"model.external = true", "tug coordinator"});
    EXPECT_EQ(refused.out(), "");
  }
}

// The programs end at different clocks, with the weights that both have made.
TEST_F(CApiTest, ProgramsTrainUnderPoliciesOfUpdatesPerPush) {
  for (const Texts& policy :
       {Texts{"sync.policy=ASP"}, Texts{"sync.policy=SSP", "sync.staleness=1"}}) {
    ASSERT_NO_FATAL_FAILURE(StartJob(policy));
    Process& first = StartExample();
    Process& second = StartExample();
    for (Process* process : {&first, &second, &coordinator()}) {
      ASSERT_TRUE(process->WaitForEnd(After(kPatience))) << process->command();
      EXPECT_EQ(process->exit_code(), 0) << process->err() << process->out();
    }
    EXPECT_THAT(first.out(), HasSubstr("largest error of a weight 0.0"));
    EXPECT_THAT(coordinator().err(), HasSubstr("done: 300 of 300 steps"));
    EXPECT_EQ(NewestCheckpoint("run"), 300u);
    fs::remove_all(Path("run"));
  }
}

TEST_F(CApiTest, AProgramWithOtherBlocksIsRefusedAndTheJobGoesOn) {
  ASSERT_NO_FATAL_FAILURE(StartJob({}));
  Process& first = StartExample();
  ASSERT_TRUE(first.WaitUntil(
      [&] {
        return absl::StrContains(Run({"status", Path("run")}).out(), "worker-");
      },
      After(kPatience)));
  Process& other = StartExample({"33"});
  ASSERT_TRUE(other.WaitForEnd(After(kPatience)));
  ExpectOneLine(other, "block 0 is 'weights' of 33 elements");
  Process& own_model = Start({"worker", "--coordinator", address()});
  ASSERT_TRUE(own_model.WaitForEnd(After(kPatience)));
  ExpectErrorLine(own_model, {"model.external = true", "exchange/c_api/tug.h"});

  Process& second = StartExample();
  for (Process* process : {&first, &second, &coordinator()}) {
    ASSERT_TRUE(process->WaitForEnd(After(kPatience))) << process->command();
    EXPECT_EQ(process->exit_code(), 0) << process->err();
  }
}

TEST_F(CApiTest, ATooSmallModelForTheLanesIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartJob({"cluster.lanes_per_server=3"}));
  Process& program = StartExample();
  ASSERT_TRUE(program.WaitForEnd(After(kPatience)));
  ExpectOneLine(program, "makes 3 lanes");
  // A server that joins later would not find the coordinator.
  const auto joined = [&] {
    return absl::StrContains(Run({"status", Path("run")}).out(), "server-");
  };
  ASSERT_TRUE(coordinator().WaitUntil(joined, After(kPatience)));
  coordinator().Signal(SIGINT);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
}

TEST_F(CApiTest, AProgramWithoutACoordinatorSaysSo) {
  Process& program = StartProgram(kProgram, {"127.0.0.1:1"});
  ASSERT_TRUE(program.WaitForEnd(After(kPatience)));
  ExpectOneLine(program, "cannot reach the coordinator at 127.0.0.1:1");
}

TEST_F(CApiTest, AProgramThatDiesFailsTheJobForTheOther) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + Texts{"fault.failure_timeout_ms=500"}));
  Process& first = StartExample();
  Process& second = StartExample();
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(coordinator(), "run"));
  first.Signal(SIGKILL);
  ASSERT_TRUE(second.WaitForEnd(After(kPatience)));
  ExpectOneLine(second, "was lost");
  EXPECT_THAT(second.err(), HasSubstr("resume with: tug coordinator --resume"));
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator().exit_code(), 1);
}

TEST_F(CApiTest, ProgramsFollowATunedScheduleAndReportWhatItCosts) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + Texts{"comm.scheduler=AUTO", "comm.tuner.trials=3",
                                                     "comm.tuner.steps_per_trial=2"}));
  const std::vector<Process*> programs = {&StartExample(), &StartExample()};
  ASSERT_TRUE(coordinator().WaitUntil(
      [&] { return absl::StrContains(coordinator().err(), "comm: settled on "); },
      After(kPatience)))
      << coordinator().err();
  const std::string status = Run({"status", Path("run")}).out();
  EXPECT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  for (Process* process : programs) ASSERT_TRUE(process->WaitForEnd(After(kPatience)));
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
  const std::string metrics = ReadText(Path("run/metrics.jsonl"));
  EXPECT_THAT(metrics, HasSubstr(R"("communication_seconds":)"));
  EXPECT_THAT(metrics, Not(HasSubstr(R"("communication_seconds":0.0,)")));
  EXPECT_THAT(status, ContainsRegex("worker-[^\n]*, peak in flight [^\n]*B"));
}

TEST_F(CApiTest, AStoppedJobGoesOnFromItsCheckpointWithTheSameBits) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless()));
  std::vector<Process*> programs = {&StartExample(), &StartExample()};
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator(), "run", 5));
  EXPECT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  programs.push_back(&coordinator());
  for (Process* process : programs) {
    ASSERT_TRUE(process->WaitForEnd(After(kPatience))) << process->command();
  }
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
  const uint64_t stopped = NewestCheckpoint("run");
  EXPECT_GE(stopped, 5u);

  // Resumes to the end, and also runs once without the stop. The second job's layout does not
  // affect the bits.
  const std::string steps = "train.steps=" + std::to_string(stopped + 20);
  const Texts schedule = {steps, "optimizer.decay_steps=100000000", "fault.heartbeat_ms=20"};
  struct Rest {
    std::string run;
    Texts arguments;
  };
  for (const Rest& rest :
       {Rest{"run", {"--resume", Path("run")}}, Rest{"whole", {"--run-dir", Path("whole")}}}) {
    fs::remove(Path(rest.run) + "/coordinator");
    Process& next = Start(Texts{"coordinator", job(), "--listen", "127.0.0.1:0"} + rest.arguments +
                          Set(schedule));
    ASSERT_TRUE(next.WaitUntil([&] { return ReadCoordinatorAddress(Path(rest.run)).ok(); },
                               After(kPatience)));
    const std::string address = ReadCoordinatorAddress(Path(rest.run))->address;
    Start({"server", "--coordinator", address});
    StartProgram(kProgram, {address});
    StartProgram(kProgram, {address});
    ASSERT_TRUE(next.WaitForEnd(After(kPatience))) << next.err();
    ASSERT_EQ(next.exit_code(), 0) << next.err();
  }
  ExpectSameState(Path("whole"), Path("run"));
}

// ---- invalid calls of a worker in a job ----

class Worker {
 public:
  explicit Worker(const std::string& address) {
    EXPECT_EQ(tug_init(address.c_str(), &tug_), TUG_OK) << tug_last_error(tug_);
    EXPECT_EQ(tug_declare(tug_, "first", 3, 1.0f, 0, TUG_WEIGHT_DECAY, &first_), TUG_OK);
    EXPECT_EQ(tug_declare(tug_, "second", 2000, 0, 0.02f, 0, &second_), TUG_OK);
  }
  ~Worker() { tug_free(tug_); }

  void Expect(tug_status expected, tug_status actual, const std::string& part) const {
    EXPECT_EQ(actual, expected);
    EXPECT_THAT(tug_last_error(tug_), AllOf(HasSubstr(part), Not(HasSubstr("\n"))));
  }

  tug_context* tug_ = nullptr;
  uint32_t first_ = 77;
  uint32_t second_ = 77;
  float weights_[2000] = {};
  float gradient_[2000] = {};
};

void ExpectRefusalsBeforeStart(Worker& worker) {
  tug_context* const tug = worker.tug_;
  tug_ticket ticket = 0;
  uint32_t number = 0;
  uint64_t step = 0;
  worker.Expect(TUG_INVALID_ARGUMENT, tug_declare(tug, "first", 1, 0, 0, 0, &number),
                "'first' is already declared");
  worker.Expect(TUG_INVALID_ARGUMENT, tug_declare(tug, "x", 1, 0, 0, 8, &number), "flags");
  worker.Expect(TUG_INVALID_ARGUMENT, tug_declare(tug, "x", 0, 0, 0, 0, &number), "no elements");
  worker.Expect(TUG_INVALID_ARGUMENT, tug_declare(tug, "x", 1, 0, 0, 0, nullptr), "block is NULL");
  worker.Expect(TUG_REFUSED, tug_pull(tug, 0, worker.weights_, &ticket), "not started");
  worker.Expect(TUG_REFUSED, tug_begin_step(tug, &step), "not started");
}

TEST_F(CApiTest, WrongCallsSayWhatIsWrongAndChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(StartJob({"cluster.workers=1", "train.steps=2"}));
  Worker worker(address());
  tug_context* const tug = worker.tug_;
  tug_ticket ticket = 0;
  uint32_t number = 0;
  uint64_t step = 0;
  EXPECT_EQ(worker.first_, 0u);
  EXPECT_EQ(worker.second_, 1u);
  ExpectRefusalsBeforeStart(worker);

  ASSERT_EQ(tug_start(tug), TUG_OK) << tug_last_error(tug);
  worker.Expect(TUG_REFUSED, tug_start(tug), "already started");
  worker.Expect(TUG_REFUSED, tug_declare(tug, "x", 1, 0, 0, 0, &number), "is declared too late");
  EXPECT_EQ(tug_worker_count(tug, &number), TUG_OK);
  EXPECT_EQ(number, 1u);
  EXPECT_EQ(tug_worker_index(tug, &number), TUG_OK);
  EXPECT_EQ(number, 0u);

  worker.Expect(TUG_REFUSED, tug_push(tug, 0, worker.gradient_, 1, &ticket), "outside a step");
  EXPECT_EQ(tug_begin_step(tug, &step), TUG_OK);
  EXPECT_EQ(step, 0u);
  worker.Expect(TUG_INVALID_ARGUMENT, tug_push(tug, 2, worker.gradient_, 1, &ticket),
                "block 2 does not exist: 2 blocks were declared");
  worker.Expect(TUG_INVALID_ARGUMENT, tug_push(tug, 0, nullptr, 1, &ticket), "needs a gradient");
  worker.Expect(TUG_INVALID_ARGUMENT, tug_push(tug, 0, worker.gradient_, 0, &ticket), "at least 1");
  worker.Expect(TUG_INVALID_ARGUMENT, tug_pull(tug, 0, nullptr, &ticket), "memory to write to");
  worker.Expect(TUG_INVALID_ARGUMENT, tug_wait(tug, 0), "not a valid ticket");
  worker.Expect(TUG_INVALID_ARGUMENT, tug_wait(tug, ~uint64_t{0}), "not a valid ticket");
  void* memory = nullptr;
  worker.Expect(TUG_INVALID_ARGUMENT, tug_buffer(tug, 0, &memory), "pass 1 to ");

  ASSERT_EQ(tug_pull(tug, 0, worker.weights_, &ticket), TUG_OK);
  worker.Expect(TUG_REFUSED, tug_pull(tug, 0, worker.weights_, &ticket),
                "was already pulled for step 0");
  EXPECT_EQ(tug_wait(tug, ticket), TUG_OK);
  EXPECT_EQ(tug_wait(tug, ticket), TUG_OK) << "again";
  EXPECT_EQ(worker.weights_[2], 1.0f);
  ASSERT_EQ(tug_push(tug, 0, worker.gradient_, 1, &ticket), TUG_OK);
  worker.Expect(TUG_REFUSED, tug_push(tug, 0, worker.gradient_, 1, &ticket),
                "'first' was already pushed in step 0");
  worker.Expect(TUG_REFUSED, tug_begin_step(tug, &step), "'second' was not pushed in step 0");
  ASSERT_EQ(tug_push(tug, 1, worker.gradient_, 1, &ticket), TUG_OK);
  EXPECT_EQ(tug_wait(tug, ticket), TUG_OK);

  // None of these calls has harmed the job.
  ASSERT_EQ(tug_begin_step(tug, nullptr), TUG_OK);
  for (uint32_t block : {0u, 1u}) {
    ASSERT_EQ(tug_push(tug, block, worker.gradient_, 1, &ticket), TUG_OK) << tug_last_error(tug);
  }
  EXPECT_EQ(tug_begin_step(tug, &step), TUG_FINISHED);
  EXPECT_EQ(tug_begin_step(tug, &step), TUG_FINISHED);
  EXPECT_EQ(tug_pull(tug, 0, worker.weights_, &ticket), TUG_OK);
  EXPECT_EQ(tug_wait(tug, ticket), TUG_OK);
  EXPECT_LT(worker.weights_[0], 1.0f) << "weight decay";
  EXPECT_EQ(tug_shutdown(tug), TUG_OK) << tug_last_error(tug);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
}

TEST_F(CApiTest, AProgramThatLeavesEarlyFailsTheJob) {
  ASSERT_NO_FATAL_FAILURE(StartJob({"cluster.workers=1"}));
  Worker worker(address());
  ASSERT_EQ(tug_start(worker.tug_), TUG_OK) << tug_last_error(worker.tug_);
  ASSERT_EQ(tug_begin_step(worker.tug_, nullptr), TUG_OK);
  worker.Expect(TUG_REFUSED, tug_shutdown(worker.tug_), "called tug_shutdown before the last step");
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  ExpectErrorLine(coordinator(), {"called tug_shutdown before the last step"});
}

TEST_F(CApiTest, TwoWorkersOfOneProcessSumTheirGradients) {
  ASSERT_NO_FATAL_FAILURE(StartJob({"train.steps=100000000"}));
  Worker workers[] = {Worker(address()), Worker(address())};
  std::vector<std::thread> threads;
  for (Worker& worker : workers) {
    threads.emplace_back([&worker] {
      tug_context* const tug = worker.tug_;
      ASSERT_EQ(tug_start(tug), TUG_OK) << tug_last_error(tug);
      void* memory = nullptr;
      ASSERT_EQ(tug_buffer(tug, 8000, &memory), TUG_OK);
      auto* const gradient = static_cast<float*>(memory);
      uint64_t step = 0;
      tug_status status = TUG_OK;
      while ((status = tug_begin_step(tug, &step)) == TUG_OK) {
        tug_ticket pushed = 0, pulled = 0;
        for (int i = 0; i < 2000; ++i) gradient[i] = static_cast<float>(step + 1);
        ASSERT_EQ(tug_push(tug, 1, gradient, 1 + step, &pushed), TUG_OK) << tug_last_error(tug);
        ASSERT_EQ(tug_pull(tug, 1, worker.weights_, &pulled), TUG_OK) << tug_last_error(tug);
        ASSERT_EQ(tug_push(tug, 0, worker.gradient_, 1, nullptr), TUG_INVALID_ARGUMENT);
        tug_ticket other = 0;
        ASSERT_EQ(tug_push(tug, 0, worker.gradient_, 1, &other), TUG_OK) << tug_last_error(tug);
        ASSERT_EQ(tug_wait(tug, pulled), TUG_OK) << tug_last_error(tug);
        ASSERT_EQ(tug_wait(tug, pushed), TUG_OK) << tug_last_error(tug);
        uint32_t index = 0;
        tug_worker_index(tug, &index);
        if (step == 20 && index == 1) {
          ASSERT_EQ(tug_stop(tug), TUG_OK) << tug_last_error(tug);
        }
      }
      ASSERT_EQ(status, TUG_FINISHED) << tug_last_error(tug);
      EXPECT_EQ(tug_shutdown(tug), TUG_OK) << tug_last_error(tug);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(workers[0].weights_[i], workers[1].weights_[i]);
    ASSERT_LT(workers[0].weights_[i], 0.0f) << "the gradients were positive";
  }
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
}

}  // namespace
}  // namespace tug
