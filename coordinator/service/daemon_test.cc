// SPDX-License-Identifier: Apache-2.0
// Tests a whole coordinator process, with nodes that talk to it like servers and workers but
// compute nothing.

#include "coordinator/service/daemon.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/files/file.h"
#include "checkpoint/best_checkpoint.h"
#include "checkpoint/checkpoint.h"
#include "config/job_config.h"
#include "coordinator/observe/metrics_log.h"
#include "coordinator/observe/run_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/layout.h"
#include "nlohmann/json.hpp"
#include "proto/wire.h"
#include "security/key_file.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Writes all blocks of a lane, one part per block.
PartFile WriteAll(const RegisterReply& job, const View& view, uint64_t version) {
  std::vector<std::vector<float>> values;
  std::vector<SegmentPart> parts;
  for (const BlockSpec& block : view.blocks().blocks()) {
    const std::vector<float>& zeros = values.emplace_back(ElementCount(block));
    parts.push_back({block.name(), 0, zeros.size(), zeros, zeros, zeros});
  }
  const auto file = WriteLanePart(job.run_dir(), version, 0, parts);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.value_or(PartFile());
}

// Joins and sends heartbeats until the job has ended; `act` fills in each next heartbeat.
Phase Live(const std::string& address, NodeKind kind,
           const std::function<void(const RegisterReply&, const View&, const HeartbeatReply&,
                                    HeartbeatRequest&)>& act) {
  const auto client = ControlClient::Connect(address, absl::Seconds(10)).value();
  RegisterRequest request;
  request.set_protocol_version(kControlVersion);
  request.set_kind(kind);
  request.set_incarnation(kind);
  if (kind == SERVER) request.add_lane_endpoints("tcp://127.0.0.1:1");
  const RegisterReply joined = client->Register(request).value();
  HeartbeatRequest beat;
  beat.set_node_id(joined.node_id());
  beat.set_job(joined.job());
  View view;
  while (true) {
    const auto reply = client->Heartbeat(beat);
    if (!reply.ok()) return PHASE_UNKNOWN;
    if (reply->phase() == DONE || reply->phase() == FAILED) return reply->phase();
    if (reply->has_view()) {
      view = reply->view();
      beat.set_known_view(view.number());
      beat.set_ready(true);
    }
    if (reply->go()) act(joined, view, *reply, beat);
  }
}

// Writes checkpoints of every `interval` steps up to the workers' progress, and of the last step.
void ActAsServer(const RegisterReply& job, const View& view, const HeartbeatReply& reply,
                 const uint64_t done, HeartbeatRequest& beat) {
  const uint64_t interval = job.config().checkpoint().interval();
  for (uint64_t version = view.start_version() + 1; version <= done; ++version) {
    if (version != reply.final_version() && (interval == 0 || version % interval != 0)) continue;
    bool written = false;
    for (const CheckpointPart& part : beat.parts()) written |= part.version() == version;
    if (written) continue;
    const PartFile file = WriteAll(job, view, version);
    CheckpointPart* part = beat.add_parts();
    part->set_placement(view.placement());
    part->set_version(version);
    part->set_file(file.name);
    part->set_size_bytes(file.size_bytes);
    part->set_xxh3(file.xxh3);
  }
}

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream text(root_ / "text.txt");
    for (int i = 0; i < 200; ++i) text << "In the beginning was the word. ";
    text.close();
    options_.config = Config({});
    options_.listen = HostPort{"127.0.0.1", 0};
    options_.run_dir = (root_ / "run").string();
  }
  JobConfig Config(const std::vector<std::string>& overrides) const {
    auto config = ParseJobConfig(
        "name: 'test' data { path: '" + (root_ / "text.txt").string() + "' }\n" +
            "model { layers: 1 width: 16 heads: 2 context: 8 } train { steps: 6 }\n" +
            "checkpoint { interval: 2 } optimizer { warmup_steps: 1 }",
        "test", overrides);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.value_or(JobConfig());
  }
  // Runs the coordinator with one server and one worker.
  absl::Status Run() {
    std::promise<std::string> address;
    options_.on_listening = [&](const std::string& at, const std::string& run_dir) {
      run_dir_ = run_dir;
      address.set_value(at);
    };
    std::future<absl::Status> end =
        std::async(std::launch::async, [&] { return RunCoordinator(options_); });
    std::future<std::string> listening = address.get_future();
    while (listening.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
      if (end.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return end.get();
    }
    const std::string at = listening.get();
    std::thread server([&] {
      Live(at, SERVER,
           [&](const auto& job, const auto& view, const auto& reply, HeartbeatRequest& beat) {
             const uint64_t done = done_;
             ActAsServer(job, view, reply, done < parts_from_ ? 0 : done, beat);
           });
    });
    std::thread worker([&] {
      Live(at, WORKER,
           [&](const auto&, const auto& view, const auto& reply, HeartbeatRequest& beat) {
             ActAsWorker(view, reply, beat);
           });
    });
    server.join();
    worker.join();
    return end.get();
  }
  void ActAsWorker(const View& view, const HeartbeatReply& reply, HeartbeatRequest& beat) {
    beat.clear_steps();
    if (!fail_with_.empty()) beat.set_failure(fail_with_);
    beat.set_pausing(reply.pause());
    if (reply.pause()) return;
    const uint64_t clock = beat.started() ? beat.clock() + 1 : view.start_version();
    if (clock == stop_at_) stop_wanted_ = true;
    if (clock >= reply.final_version()) {
      if (beat.finished()) return;
      beat.set_finished(true);
      if (evaluate_late_) {
        for (const auto& [version, loss] : losses_) AddEval(beat, version, loss);
      }
      AddEval(beat, reply.final_version(), 2, /*final=*/true);
      return;
    }
    beat.set_started(true);
    beat.set_clock(clock);
    StepReport* step = beat.add_steps();
    step->set_clock(clock);
    step->set_loss_sum(30);
    step->set_tokens(10);
    step->set_targets(10);
    step->set_step_seconds(0.01);
    const auto loss = losses_.find(clock + 1);
    if (loss != losses_.end() && !evaluate_late_) AddEval(beat, clock + 1, loss->second);
    done_ = clock + 1;
  }
  static void AddEval(HeartbeatRequest& beat, uint64_t version, double loss, bool final = false) {
    EvalReport* eval = beat.add_evals();
    eval->set_version(version);
    eval->set_loss_sum(10 * loss);
    eval->set_targets(10);
    eval->set_final(final);
  }
  std::string File(const std::string& name) const {
    return ReadWholeFile(run_dir_ + "/" + name, 1 << 20).value_or("");
  }

  const fs::path root_ = fs::path(::testing::TempDir()) / "daemon_test";
  CoordinatorDaemonOptions options_;
  std::string run_dir_;
  std::string fail_with_;
  uint64_t stop_at_ = 1000000;
  std::map<uint64_t, double> losses_;  // of evaluations during training, by version
  bool evaluate_late_ = false;         // all evaluations arrive after the last step
  uint64_t parts_from_ = 0;            // the server reports no checkpoint before this step is done
  std::atomic<bool> stop_wanted_ = false;
  std::atomic<uint64_t> done_ = 0;
};

TEST_F(DaemonTest, LeavesARunFolderWithEverythingInIt) {
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(run_dir_, options_.run_dir);
  EXPECT_THAT(File(kConfigFile), HasSubstr("resolved_symbols: 256"));
  EXPECT_THAT(File(kLossPicture), HasSubstr("<svg"));
  EXPECT_FALSE(fs::exists(run_dir_ + "/" + kCoordinatorFile));
  EXPECT_TRUE(fs::exists(run_dir_ + "/" + kTokenFile));
  const auto curve = ReadLossCurve(run_dir_ + "/" + kMetricsFile);
  ASSERT_TRUE(curve.ok());
  ASSERT_EQ(curve->training.size(), 6u);
  EXPECT_EQ(curve->training[5].loss, 3);
  ASSERT_EQ(curve->validation.size(), 1u);
  EXPECT_EQ(curve->validation[0].loss, 2);
  EXPECT_THAT(File(kMetricsFile), HasSubstr("\"checkpoint\""));
  const auto checkpoint = FindCheckpoint(run_dir_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->manifest.version(), 6u);
  EXPECT_EQ(checkpoint->manifest.timeline(), 1u);
}

TEST_F(DaemonTest, ARunIsCalledAfterItsFolderAlsoWithASlashAtItsEnd) {
  options_.run_dir += "/";
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(run_dir_, (root_ / "run").string());
  EXPECT_THAT(File(kLossPicture), HasSubstr("run: GPT, 1 layers"));
}

TEST_F(DaemonTest, GoesOnFromACheckpointInTheSameFolder) {
  stop_at_ = 3;
  options_.stop_wanted = [&] { return stop_wanted_.load(); };
  // Stops in order at step 3 or later.
  options_.config = Config({"train.steps=100000"});
  ASSERT_TRUE(Run().ok());
  const uint64_t stopped = FindCheckpoint(run_dir_)->manifest.version();
  EXPECT_GE(stopped, 3u);
  EXPECT_LT(stopped, 100000u);

  options_.config =
      Config({"train.steps=" + std::to_string(stopped + 2), "cluster.lanes_per_server=1"});
  options_.stop_wanted = nullptr;
  options_.resume = run_dir_;
  options_.run_dir = "";
  done_ = 0;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(run_dir_, (root_ / "run").string());
  const auto checkpoint = FindCheckpoint(run_dir_);
  EXPECT_EQ(checkpoint->manifest.version(), stopped + 2);
  EXPECT_EQ(checkpoint->manifest.timeline(), 2u);
  const auto curve = ReadLossCurve(run_dir_ + "/" + kMetricsFile);
  EXPECT_EQ(curve->training.size(), stopped + 2);
  ASSERT_EQ(curve->settings.size(), 1u);
  EXPECT_EQ(curve->settings[0].step, stopped);
  EXPECT_EQ(curve->settings[0].changed.front(),
            "train.steps 100000 -> " + std::to_string(stopped + 2));
  EXPECT_THAT(File(kLossPicture), HasSubstr("train.steps 100000"));
}

TEST_F(DaemonTest, ARunWhoseMetricsEndAmidALineGoesOnWithALineOfItsOwn) {
  ASSERT_TRUE(Run().ok());
  const std::string metrics = run_dir_ + "/" + kMetricsFile;
  fs::resize_file(metrics, fs::file_size(metrics) - 25);
  options_.config = Config({"train.steps=8"});
  options_.resume = run_dir_;
  options_.run_dir = "";
  done_ = 0;
  ASSERT_TRUE(Run().ok());
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

// E.g. another user's file, a mount, or a file that NFS keeps while it is open.
TEST_F(DaemonTest, ALeftoverThatCannotBeDeletedStays) {
  ASSERT_TRUE(Run().ok());
  const std::string leftover = run_dir_ + "/checkpoints/step-00000099.tmp";
  std::ofstream(leftover) << "no folder";
  ASSERT_FALSE(DiscardUnfinished(run_dir_).ok());
  options_.config = Config({"train.steps=8"});
  options_.resume = run_dir_;
  options_.run_dir = "";
  done_ = 0;
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(FindCheckpoint(run_dir_)->manifest.version(), 8u);
  EXPECT_TRUE(fs::exists(leftover));
}

// They would be taken for the keys of the resumed job.
TEST_F(DaemonTest, KeysThatAKilledRunLeftAreRemoved) {
  ASSERT_TRUE(Run().ok());
  const std::string left = run_dir_ + "/" + kKeysFile;
  ASSERT_TRUE(WriteNewKeyFile(left, MakeJobKeys(SecurityConfig::TOKEN).value()).ok());
  options_.config = Config({"train.steps=8"});
  options_.resume = run_dir_;
  options_.run_dir = "";
  done_ = 0;
  ASSERT_TRUE(Run().ok());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(DaemonTest, TheBestIsNeverADeletedCheckpointWhenManyComeAtOnce) {
  losses_ = {{1, 1.0}, {2, 1.5}, {3, 1.25}, {4, 1.75}};
  parts_from_ = 4;
  int run = 0;
  for (const char* keep : {"1", "2"}) {
    for (const bool late : {false, true}) {
      SCOPED_TRACE(testing::Message() << "keep " << keep << (late ? ", evaluated late" : ""));
      options_.config = Config({"train.steps=4", "train.eval_interval=1", "checkpoint.interval=1",
                                std::string("checkpoint.keep=") + keep});
      options_.run_dir = (root_ / ("best-" + std::to_string(run++))).string();
      const std::string best = options_.run_dir + "/" + kBestFile;
      options_.stop_wanted = [&] {
        if (fs::exists(best)) {
          EXPECT_TRUE(FindCheckpoint(best).ok()) << FindCheckpoint(best).status();
        }
        return false;
      };
      evaluate_late_ = late;
      done_ = 0;
      ASSERT_TRUE(Run().ok());
      const auto found = FindCheckpoint(best);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->manifest.version(), 1u);
      EXPECT_EQ(FindCheckpoint(run_dir_)->manifest.version(), 4u);
    }
  }
}

TEST_F(DaemonTest, TheLastEvaluationIsNoMeasureForThoseOfTheRunThatGoesOn) {
  // The final evaluation, of step 4 over the whole split, has loss 2.
  losses_ = {{1, 3.0}, {4, 3.0}, {5, 2.9}, {6, 2.8}, {7, 2.7}};
  options_.config = Config({"train.steps=4", "train.eval_interval=1", "train.patience=2"});
  ASSERT_TRUE(Run().ok());
  options_.config = Config({"train.steps=8", "train.eval_interval=1", "train.patience=2"});
  options_.resume = run_dir_;
  options_.run_dir = "";
  done_ = 0;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(File(kMetricsFile), ::testing::Not(HasSubstr("stopped early")));
  EXPECT_EQ(FindCheckpoint(run_dir_)->manifest.version(), 8u);
}

TEST_F(DaemonTest, EvaluationsThatWereNotFiniteCountInTheRunThatGoesOn) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  losses_ = {{1, 3.0}, {2, nan}, {3, nan}, {5, 3.5}};
  options_.config = Config({"train.steps=4", "train.eval_interval=1", "train.patience=3"});
  ASSERT_TRUE(Run().ok());
  options_.config = Config({"train.steps=100000", "train.eval_interval=1", "train.patience=3"});
  options_.resume = run_dir_;
  options_.run_dir = "";
  done_ = 0;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(File(kMetricsFile), HasSubstr("\"reason\":\"stopped early\""));
}

TEST_F(DaemonTest, BranchesOffWhenAnotherFolderIsNamed) {
  ASSERT_TRUE(Run().ok());
  options_.resume = run_dir_ + "/checkpoints/step-00000004";
  options_.run_dir = (root_ / "branch").string();
  done_ = 0;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(run_dir_, options_.run_dir);
  EXPECT_EQ(ReadLossCurve(run_dir_ + "/" + kMetricsFile)->training.size(), 2u);
}

TEST_F(DaemonTest, AJobThatHasAllItsStepsIsDone) {
  ASSERT_TRUE(Run().ok());
  options_.resume = run_dir_;
  options_.run_dir = "";
  options_.on_listening = [](const std::string&, const std::string&) { FAIL() << "it begins"; };
  EXPECT_TRUE(RunCoordinator(options_).ok());
  options_.run_dir = (root_ / "branch").string();
  EXPECT_TRUE(RunCoordinator(options_).ok());
  EXPECT_FALSE(std::filesystem::exists(options_.run_dir));
}

TEST_F(DaemonTest, RefusesToResumeAnotherModelAndTouchesNothing) {
  ASSERT_TRUE(Run().ok());
  options_.config = Config({"model.width=32", "train.steps=20"});
  options_.resume = run_dir_;
  options_.run_dir = "";
  EXPECT_THAT(std::string(Run().message()),
              HasSubstr("model.width is 16 in the checkpoint but 32 in this job"));
  EXPECT_EQ(FindCheckpoint(run_dir_)->manifest.version(), 6u);
}

TEST_F(DaemonTest, RefusesADamagedCheckpoint) {
  ASSERT_TRUE(Run().ok());
  const std::string folder = FindCheckpoint(run_dir_)->folder;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('\x7f');
  }
  options_.config = Config({"train.steps=20"});
  options_.resume = run_dir_;
  options_.run_dir = "";
  EXPECT_EQ(Run().code(), absl::StatusCode::kDataLoss);
}

TEST_F(DaemonTest, EndsWithTheReasonOfANodeThatFailed) {
  fail_with_ = "the text is gone: put it back";
  EXPECT_THAT(std::string(Run().message()), HasSubstr("the text is gone: put it back"));
}

TEST_F(DaemonTest, LeavesNoFolderBehindWhenTheTextIsMissingOrTooShort) {
  options_.config.mutable_data()->set_path((root_ / "missing.txt").string());
  EXPECT_THAT(std::string(Run().message()), HasSubstr("missing.txt"));
  EXPECT_FALSE(fs::exists(options_.run_dir));
  std::ofstream(root_ / "short.txt") << "short";
  options_.config.mutable_data()->set_path((root_ / "short.txt").string());
  EXPECT_THAT(std::string(Run().message()), HasSubstr("short.txt"));
  EXPECT_FALSE(fs::exists(options_.run_dir));
}

TEST_F(DaemonTest, DeletesNoFolderThatItHasNotMade) {
  options_.config.mutable_data()->set_path((root_ / "missing.txt").string());
  fs::create_directory(root_ / "there");
  fs::create_directory_symlink("there", root_ / "link");
  for (const char* name : {"there", "link"}) {
    options_.run_dir = (root_ / name).string();
    EXPECT_THAT(std::string(Run().message()), HasSubstr("missing.txt"));
    EXPECT_TRUE(fs::is_directory(root_ / name));
  }
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
}

}  // namespace
}  // namespace tug
