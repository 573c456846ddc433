// SPDX-License-Identifier: Apache-2.0
// `tug experiment FILE` as a user runs it: short real jobs, their results, and resuming after a
// kill.

#include <signal.h>

#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Two cases, steps of a few milliseconds.
constexpr char kFile[] = R"(name: "tiny"
question: "Is it quick?"
job {
  compute: REPLAY
  replay { profile: "tiny.textproto" }
  cluster { servers: 1 workers: 1 }
  train { steps: 6 }
  optimizer { clip: OFF }
  checkpoint { interval: 0 }
}
axes { field: "comm.scheduler" values: ["FIFO", "PRIORITY"] }
baseline { where: "scheduler=FIFO" }
repeats: 2
warm_up_steps: 2
measures: ["step_time", "exposed_time"]
)";

class ExperimentFileTest : public TugTest {
 protected:
  ExperimentFileTest() {
    Write("tiny.textproto", R"(
name: "tiny"
batch: 1
blocks { name: "a" parameters: 2000 forward_ms: 1 backward_ms: 2 }
blocks { name: "b" parameters: 10000 forward_ms: 1 backward_ms: 1 }
)");
    Write("file.textproto", kFile);
  }

  Texts Experiment(const Texts& more = {}) const {
    return Texts{"experiment", "file.textproto", "--out", Path("out")} + more;
  }
  std::vector<nlohmann::json> Rows() const {
    std::vector<nlohmann::json> rows;
    for (const std::string& line :
         std::vector<std::string>(absl::StrSplit(ReadText(Path("out/rows.jsonl")), '\n'))) {
      if (!line.empty()) rows.push_back(nlohmann::json::parse(line, nullptr, false));
    }
    return rows;
  }
  std::vector<std::string> RunsOf(const std::vector<nlohmann::json>& rows) const {
    std::vector<std::string> runs;
    for (const nlohmann::json& row : rows) {
      runs.push_back(absl::StrCat(row["case"].get<std::string>(), " ", row["repeat"].get<int>()));
    }
    return runs;
  }
};

TEST_F(ExperimentFileTest, RunsEveryCaseInEveryRepeatAndReports) {
  const Process& run = Run(Experiment());
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_THAT(run.err(), AllOf(HasSubstr("2 cases, 2 repeats each: 4 runs"), HasSubstr("[4/4]"),
                               HasSubstr("left"), Not(HasSubstr("tug: "))));
  EXPECT_THAT(run.out(), HasSubstr("/out/report.html"));
  const std::vector<nlohmann::json> rows = Rows();
  EXPECT_THAT(RunsOf(rows), ElementsAre("scheduler=FIFO 0", "scheduler=PRIORITY 0",
                                        "scheduler=FIFO 1", "scheduler=PRIORITY 1"));
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row["seed"].get<int>(), 1 + row["repeat"].get<int>());
    EXPECT_EQ(row["error"], "");
    EXPECT_GE(row["measures"]["step_time"].get<double>(), 4.9) << "computing alone takes 5 ms";
    EXPECT_GT(row["measures"]["wall_time"].get<double>(), 0);
    EXPECT_TRUE(row["measures"]["final_loss"].is_null()) << "a replay learns nothing";
    EXPECT_THAT(row["command"].get<std::string>(),
                AllOf(StartsWith("tug train "), HasSubstr("--set comm.scheduler=")));
    EXPECT_THAT(row["machine"].get<std::string>(), HasSubstr("cores"));
    EXPECT_TRUE(fs::exists(Path("out/" + row["folder"].get<std::string>() + "/metrics.jsonl")));
  }
  const std::string page = ReadText(Path("out/report.html"));
  EXPECT_THAT(page, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("Is it quick?"),
                          HasSubstr("Compared with the baseline"), HasSubstr("</html>")));
  EXPECT_THAT(ReadText(Path("out/report.md")), HasSubstr("figure-1.svg"));
  EXPECT_THAT(ReadText(Path("out/figure-1.svg")), AllOf(StartsWith("<svg"), HasSubstr("<style>")));
  ExpectNobodyLeft();
}

TEST_F(ExperimentFileTest, GoesOnAfterItWasKilled) {
  Process& killed = Start(Experiment({"--repeats", "3"}));
  ASSERT_TRUE(killed.WaitUntil([&] { return Rows().size() >= 2; }, After(kPatience)))
      << killed.out() << killed.err();
  killed.Signal(SIGKILL);
  ASSERT_TRUE(killed.WaitForEnd(After(kPatience)));
  ExpectNobodyLeft();
  const std::string before = ReadText(Path("out/rows.jsonl"));
  // A crash during a write leaves a partial line.
  Write("out/rows.jsonl", before + "{\"case\":\"scheduler=FI");
  const Process& run = Run(Experiment({"--repeats", "3"}));
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_THAT(run.err(), HasSubstr("runs exist already"));
  EXPECT_THAT(ReadText(Path("out/rows.jsonl")), StartsWith(before));
  const std::vector<std::string> runs = RunsOf(Rows());
  EXPECT_EQ(runs.size(), 6u);
  EXPECT_EQ(std::set<std::string>(runs.begin(), runs.end()).size(), 6u) << "each once";
  ExpectNobodyLeft();
}

TEST_F(ExperimentFileTest, GoesOnAfterTheProgramWasDeleted) {
  for (const char* name : {"tug", "tug-lab"}) fs::copy_file(fs::path("cli") / name, Path(name));
  Process& run = StartProgram(Path("tug"), Experiment());
  ASSERT_TRUE(run.WaitUntil([&] { return !Rows().empty(); }, After(kPatience))) << run.err();
  for (const char* name : {"tug", "tug-lab"}) fs::remove(Path(name));
  ASSERT_TRUE(run.WaitForEnd(After(kPatience))) << run.err();
  EXPECT_EQ(run.exit_code(), 0) << run.err();
  const std::vector<nlohmann::json> rows = Rows();
  EXPECT_EQ(rows.size(), 4u);
  for (const nlohmann::json& row : rows) EXPECT_EQ(row["error"], "");
}

TEST_F(ExperimentFileTest, RunsOnlyWhatMoreRepeatsNeed) {
  ASSERT_EQ(Run(Experiment({"--repeats", "1"})).exit_code(), 0);
  const std::string before = ReadText(Path("out/rows.jsonl"));
  // Measures to show may change between runs.
  Write("file.textproto", absl::StrCat(kFile, "measures: \"wall_time\"\n"));
  const Process& more = Run(Experiment());
  ASSERT_EQ(more.exit_code(), 0) << more.err();
  EXPECT_THAT(more.err(),
              AllOf(HasSubstr("2 runs exist already"), HasSubstr("[2/2]"), HasSubstr("wall_time")));
  EXPECT_THAT(ReadText(Path("out/rows.jsonl")), StartsWith(before));
  EXPECT_EQ(Rows().size(), 4u);
  const Process& again = Run(Experiment());
  EXPECT_EQ(again.exit_code(), 0) << again.err();
  EXPECT_THAT(again.err(), Not(HasSubstr("[1/")));
  const Process& fewer = Run(Experiment({"--repeats", "1"}));
  EXPECT_EQ(fewer.exit_code(), 0) << fewer.err();
  EXPECT_THAT(fewer.err(), HasSubstr("2 runs exist already"));
  EXPECT_EQ(Rows().size(), 4u) << "they stay";
}

TEST_F(ExperimentFileTest, RefusesAFolderThatIsNotItsOwn) {
  ASSERT_EQ(Run(Experiment({"--repeats", "1"})).exit_code(), 0);
  ExpectErrorLine(Run(Experiment({"--set", "train.steps=7"})),
                  {"another experiment", "case scheduler=FIFO differs", "--out"});
  fs::create_directories(Path("mine"));
  Write("mine/kept", "");
  ExpectErrorLine(Run({"experiment", "file.textproto", "--out", Path("mine")}),
                  {"not an experiment folder", "--out"});
  EXPECT_TRUE(fs::exists(Path("mine/kept")));
}

TEST_F(ExperimentFileTest, TakesAFolderInWhichNothingHasEnded) {
  fs::create_directories(Path("out"));
  Write("out/experiment.json", "{\"name\": \"another\"}");
  const Process& run = Run(Experiment({"--repeats", "1"}));
  EXPECT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_EQ(Rows().size(), 2u);
}

TEST_F(ExperimentFileTest, KeepsACaseThatFailsAndRunsTheOthers) {
  Write("file.textproto", absl::StrReplaceAll(kFile, {{R"("FIFO", "PRIORITY"])",
                                                       R"("FIFO", "PRIORITY"] }
axes { name: "profile" value { label: "good" }
  value { label: "bad" set: "replay.profile=missing.textproto" })"}}));
  ExpectErrorLine(Run(Experiment({"--repeats", "1"})),
                  {"2 of 4 runs failed", "profile=bad", "missing.textproto", "--retry-failed"});
  EXPECT_EQ(Rows().size(), 4u);
  EXPECT_THAT(
      ReadText(Path("out/report.html")),
      AllOf(HasSubstr("Failed runs"), HasSubstr("missing.textproto"), HasSubstr("</html>")));
  Write("missing.textproto", ReadText(Path("tiny.textproto")));
  ASSERT_EQ(Run(Experiment({"--repeats", "1", "--retry-failed"})).exit_code(), 0);
  EXPECT_EQ(Rows().size(), 4u);
  EXPECT_THAT(ReadText(Path("out/report.html")), Not(HasSubstr("Failed runs")));
  ExpectNobodyLeft();
}

TEST_F(ExperimentFileTest, ListsCasesWithoutRunningThem) {
  const Process& run = Run(Experiment({"--dry-run"}));
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  EXPECT_THAT(run.out(), AllOf(HasSubstr("4 runs"), HasSubstr("scheduler=PRIORITY\n"),
                               HasSubstr("tug train "), HasSubstr("--set seed=1")));
  EXPECT_FALSE(fs::exists(Path("out")));
}

TEST_F(ExperimentFileTest, RunsOneCase) {
  ASSERT_EQ(Run(Experiment({"--repeats", "1", "--case", "scheduler=PRIORITY"})).exit_code(), 0);
  EXPECT_THAT(RunsOf(Rows()), ElementsAre("scheduler=PRIORITY 0"));
  ExpectErrorLine(Run(Experiment({"--case", "scheduler=PRIORITI"})),
                  {"--case", "did you mean scheduler=PRIORITY?"});
}

TEST_F(ExperimentFileTest, EndsAtAnInterruptAndIsOneAtATime) {
  Process& run = Start(Experiment({"--set", "train.steps=1000000"}));
  ASSERT_TRUE(run.WaitUntil(
      [&] {
        return absl::StrContains(ReadText(Path("out/runs/001-FIFO-r1/metrics.jsonl")), "\"step\"");
      },
      After(kPatience)))
      << run.out() << run.err();
  ExpectErrorLine(Run(Experiment({"--set", "train.steps=1000000"})), {"in use", "--out"});
  run.Signal(SIGINT);
  ASSERT_TRUE(run.WaitForEnd(After(kPatience)));
  ExpectErrorLine(run, {"interrupted after 0 of 4 runs", "run the same command again"});
  EXPECT_TRUE(Rows().empty());
  ExpectNobodyLeft();
}

TEST_F(ExperimentFileTest, TrainsOnAMadeUpText) {
  Write("file.textproto", R"(
name: "learning"
question: "Does it learn?"
job {
  cluster { servers: 1 workers: 1 }
  data { tokenizer: CHARACTER }
  model { layers: 1 width: 32 heads: 2 context: 16 }
  train { steps: 12 global_batch: 4 eval_interval: 4 eval_samples: 16 }
}
made_up_text_bytes: 20000
repeats: 1
measures: ["final_loss", "token_rate"]
sections: LOSSES
)");
  const Process& run = Run(Experiment());
  ASSERT_EQ(run.exit_code(), 0) << run.err();
  const std::vector<nlohmann::json> rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GT(rows[0]["measures"]["final_loss"].get<double>(), 1);
  EXPECT_GT(rows[0]["measures"]["token_rate"].get<double>(), 1);
  EXPECT_THAT(ReadText(Path("out/report.html")),
              AllOf(HasSubstr("Losses"), HasSubstr("training loss"), HasSubstr("</html>")));
  ExpectNobodyLeft();
}

TEST_F(ExperimentFileTest, FindsMistakesBeforeAnythingRuns) {
  ExpectErrorLine(Run({"experiment", "worker_sync"}), {"worker_sync", "did you mean workers_sync"});
  ExpectErrorLine(Run(Experiment({"--set", "train.step=3"})), {"did you mean steps?"});
  Write("file.textproto", absl::StrCat(kFile, "measure: \"step_time\"\n"));
  ExpectErrorLine(Run(Experiment()), {"file.textproto:16:", "did you mean measures?"});
  Write("file.textproto", absl::StrReplaceAll(kFile, {{"\"PRIORITY\"", "\"PRIORITI\""}}));
  ExpectErrorLine(Run(Experiment()), {"file.textproto:11: ", "scheduler, value PRIORITI"});
  EXPECT_FALSE(fs::exists(Path("out"))) << "nothing was begun";
}

}  // namespace
}  // namespace tug
