// SPDX-License-Identifier: Apache-2.0
// `tug bench` as a user runs it: real servers and workers, briefly; and its errors.

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BenchTest : public TugTest {
 protected:
  std::string Output(const Texts& arguments) {
    const Process& process = Run(Texts{"bench"} + arguments);
    EXPECT_EQ(process.exit_code(), 0) << process.command() << "\n" << process.err();
    EXPECT_EQ(process.err(), "") << process.command();
    return process.out();
  }
};

TEST_F(BenchTest, MeasuresPushAndPullBesideTheLimits) {
  const std::string out = Output({"push-pull", "--bytes", "64K", "--op", "push,pull,push-pull",
                                  "--seconds", "0.1", "--runs", "1", "--json", Path("bench.json")});
  EXPECT_THAT(out, AllOf(HasSubstr("64 KiB partitions over tcp"), HasSubstr("push + pull"),
                         HasSubstr("push round trip"), HasSubstr("of plain TCP stream"),
                         HasSubstr("of ZeroMQ round trip"), HasSubstr("one-copy shared memory")));
  std::ifstream file(Path("bench.json"));
  const nlohmann::json rows = nlohmann::json::parse(file)["tables"][0]["rows"];
  for (const nlohmann::json& row : rows) {
    ASSERT_EQ(row["runs"].size(), 1u) << row;
    EXPECT_GT(row["runs"][0]["gigabytes_per_second"].get<double>(), 0) << row;
  }
  ExpectNobodyLeft();
}

TEST_F(BenchTest, MeasuresManyOfEverything) {
  EXPECT_THAT(Output({"push-pull", "--bytes",   "64K",  "--op",
                      "push-pull", "--servers", "2",    "--workers",
                      "3",         "--lanes",   "2",    "--virtual-workers-per-worker",
                      "2",         "--format",  "bf16", "--checksum",
                      "off",       "--limits",  "off",  "--through",
                      "machine",   "--seconds", "0.1",  "--runs",
                      "1"}),
              HasSubstr("32 KiB partitions over tcp, bf16"));
  ExpectNobodyLeft();
}

TEST_F(BenchTest, MeasuresSharedMemoryBesideTcp) {
  EXPECT_THAT(Output({"push-pull", "--transport", "shm", "--bytes", "64K", "--op", "push-pull",
                      "--seconds", "0.1", "--runs", "1"}),
              AllOf(HasSubstr("64 KiB partitions over shm"), HasSubstr("of one-copy shared memory"),
                    HasSubstr("of push + pull over TCP")));
  ExpectNobodyLeft();
}

TEST_F(BenchTest, MeasuresALane) {
  EXPECT_THAT(Output({"server", "--parameters", "1048576", "--runs", "1"}),
              AllOf(HasSubstr("of STREAM's rate"), HasSubstr("update by AdamW")));
  EXPECT_THAT(Output({"server", "--memory", "--parameters", "2097152", "--workers", "1,2",
                      "--seconds", "0.1"}),
              AllOf(HasSubstr("even workers first"), HasSubstr("line MiB")));
  ExpectNobodyLeft();
}

TEST_F(BenchTest, MeasuresCollectivesBesideThePrediction) {
  const std::string out =
      Output({"collectives", "--bytes", "4K,1M", "--ranks", "2,3", "--seconds", "0.01", "--runs",
              "2", "--limits", "off", "--json", Path("collectives.json")});
  EXPECT_THAT(out, AllOf(HasSubstr("all-reduce over tcp, 2 ranks, FP32"),
                         HasSubstr("all-reduce over shm, 3 ranks"), HasSubstr("alpha"),
                         HasSubstr("halving_doubling"), HasSubstr("auto: ")));
  std::ifstream file(Path("collectives.json"));
  const nlohmann::json tables = nlohmann::json::parse(file)["tables"];
  ASSERT_EQ(tables.size(), 4u);
  for (const nlohmann::json& table : tables) {
    EXPECT_GT(table["link"]["gamma"].get<double>(), 0);
    ASSERT_EQ(table["rows"].size(), 12u);
    for (const nlohmann::json& row : table["rows"]) {
      EXPECT_EQ(row["seconds"].size(), 2u) << row;
      EXPECT_GT(row["predicted_seconds"].get<double>(), 0) << row;
    }
  }
  ExpectNobodyLeft();
}

TEST_F(BenchTest, RefusesWhatItCannotMeasure) {
  ExpectErrorLine(Run({"bench", "collectives", "--algorithm", "circle"}), {"--algorithm circle"});
  ExpectErrorLine(Run({"bench", "push-pull", "--bytes", "5000"}), {"--bytes 5000", "power of two"});
  ExpectErrorLine(Run({"bench", "push-pull", "--op", "pushpull"}), {"--op pushpull"});
  ExpectErrorLine(Run({"bench", "push-pull", "--transport", "pigeon"}), {"--transport pigeon"});
  ExpectErrorLine(Run({"bench", "push-pull", "--hosts", "no-such-host,no-such-host"}),
                  {"no-such-host", "deploy/testbed up"});
  ExpectErrorLine(Run({"bench", "server", "--workers", "0"}), {"--workers"});
  ExpectNobodyLeft();
}

TEST_F(BenchTest, RefusesATrainingOfMorePassesThanItRecords) {
  Write("job.textproto", R"(
name: "many-passes"
device: CPU
data { path: "text.txt" tokenizer: CHARACTER }
model { layers: 1 width: 32 heads: 2 context: 16 }
train { steps: 9 global_batch: 64 micro_batch: 1 }
)");
  Write("text.txt", std::string(4000, 'a') + std::string(4000, 'b'));
  ExpectErrorLine(Run({"bench", "training", "job.textproto", "--steps", "1000"}),
                  {"--steps 1000", "65536 can be recorded"});
}

}  // namespace
}  // namespace tug
