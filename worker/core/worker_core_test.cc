// SPDX-License-Identifier: Apache-2.0
#include "worker/core/worker_core.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr uint32_t kBlocks = 2;

// Records the actions that a core asks of its worker.
class Notes final : public WorkerActions {
 public:
  void SetSchedule(const ExchangeSchedule& schedule) override {
    Add(absl::StrCat("schedule ", schedule.number));
  }
  void Pull(PullRequest request, bool whole) override {
    Add(absl::StrCat("pull ", request.block, " for ", request.clock,
                     request.want == Want::kExact ? " exactly" : "", whole ? ", whole" : ""));
  }
  absl::Status Drop(const DropOrder& order) override {
    Add(absl::StrCat("drop ", order.block));
    return absl::OkStatus();
  }
  void Push(const Compute& compute, const PushOrder& order) override {
    Add(absl::StrCat("push ", order.block, " of ", compute.virtual_worker, " at ", compute.clock,
                     ", ", order.terms, " terms"));
  }
  void Carry(const std::vector<uint32_t>& virtual_workers,
             const std::vector<std::optional<uint32_t>>& before) override {
    for (size_t i = 0; i < before.size(); ++i) {
      Add(absl::StrCat(before[i].has_value() ? "keep " : "take ", virtual_workers[i]));
    }
  }
  absl::Status SaveResiduals(const ResidualOrder& order) override {
    Add(absl::StrCat("save ", order.virtual_worker, " for ", order.versions.back(), ", view ",
                     order.view));
    return absl::OkStatus();
  }
  StepReport EndStep(uint64_t, uint64_t) override { return StepReport(); }
  double ResidualSquares(uint32_t) const override { return 18; }

  std::vector<std::string> Take() { return std::exchange(notes_, {}); }

 private:
  void Add(std::string note) { notes_.push_back(std::move(note)); }

  std::vector<std::string> notes_;
};

using Lines = std::vector<std::string>;

// A core that runs virtual workers 1 and 2 of three.
class WorkerCoreTest : public testing::Test {
 protected:
  WorkerCoreTest() {
    options_.config.mutable_train()->set_steps(20);
    options_.config.mutable_checkpoint()->set_interval(1);
    options_.config.mutable_cluster()->set_virtual_workers(3);
    options_.virtual_workers = {1, 2};
    options_.view = 1;
    options_.blocks = kBlocks;
    options_.eval_micro_batches = [](uint32_t, bool) { return 0; };
  }

  void Start(const ControlBoard::Orders& orders) {
    board_.SetOrders(orders);
    core_.emplace(options_, notes_, board_);
    ASSERT_TRUE(core_->RefreshOrders().ok());
  }
  // Runs one computation once its missing weights have arrived; adds `targets` to its share.
  void Compute(uint64_t targets = 0) {
    while (core_->next() == WorkerCore::Next::kAwaitWeights) {
      ASSERT_TRUE(core_->OnWeights(core_->awaited(), {core_->clock(), core_->clock()}).ok());
    }
    ASSERT_EQ(core_->next(), WorkerCore::Next::kCompute);
    core_->BeginCompute();
    core_->share().sums.targets += targets;
    ASSERT_TRUE(core_->Finish(core_->OnComputeDone()).ok());
  }
  void Step() {
    for (uint32_t i = 0; i < 2 * kBlocks * core_->virtual_workers().size(); ++i) Compute(3);
    ASSERT_TRUE(core_->RefreshOrders().ok());
  }
  HeartbeatRequest Beat() const {
    HeartbeatRequest beat;
    board_.AddTo(beat);
    return beat;
  }

  WorkerCore::Options options_;
  Notes notes_;
  ControlBoard board_;
  std::optional<WorkerCore> core_;
};

TEST_F(WorkerCoreTest, PullsNothingBeforeTheJobGoes) {
  Start({.go = false});
  EXPECT_EQ(core_->next(), WorkerCore::Next::kAwaitOrders);
  EXPECT_EQ(notes_.Take(), Lines());
  board_.SetOrders({.go = true});
  ASSERT_TRUE(core_->RefreshOrders().ok());
  EXPECT_EQ(notes_.Take(), (Lines{"pull 0 for 0 exactly", "pull 1 for 0 exactly"}));
  EXPECT_EQ(core_->next(), WorkerCore::Next::kAwaitWeights);
}

TEST_F(WorkerCoreTest, PushesInTheOrderOfCompletionAndReportsEveryVirtualWorker) {
  Start({.go = true});
  notes_.Take();
  Step();
  EXPECT_EQ(notes_.Take(), (Lines{"push 1 of 0 at 0, 9 terms", "push 0 of 0 at 0, 12 terms",
                                  "push 1 of 1 at 0, 9 terms", "pull 1 for 1 exactly",
                                  "push 0 of 1 at 0, 12 terms", "pull 0 for 1 exactly"}));
  const HeartbeatRequest beat = Beat();
  ASSERT_EQ(beat.steps_size(), 2);
  EXPECT_EQ(beat.steps(1).virtual_worker(), 2u);
  EXPECT_EQ(beat.steps(1).targets(), 12u);
  EXPECT_EQ(beat.steps(1).residual_squares(), 18.0 / (12 * 12));
  EXPECT_EQ(beat.clock(), 1u);
}

TEST_F(WorkerCoreTest, HoldsPushesWhereItClipsByANormOverAllBlocks) {
  options_.config.mutable_sync()->set_policy(SyncConfig::ASP);
  options_.config.mutable_optimizer()->set_clip(OptimizerConfig::GLOBAL);
  options_.virtual_workers = {1};
  Start({.go = true});
  notes_.Take();
  for (uint32_t i = 0; i < 2 * kBlocks - 1; ++i) Compute();
  EXPECT_EQ(notes_.Take(), Lines());
  Compute(/*targets=*/3);
  EXPECT_EQ(notes_.Take(), (Lines{"push 1 of 0 at 0, 3 terms", "pull 1 for 1",
                                  "push 0 of 0 at 0, 3 terms", "pull 0 for 1"}));
}

TEST_F(WorkerCoreTest, TheNewestScheduleTakesEffectWithAStep) {
  Start({.go = true});
  Compute();
  board_.SetOrders({.go = true, .schedule = {.number = 4}});
  ASSERT_TRUE(core_->RefreshOrders().ok());
  notes_.Take();
  Compute();
  EXPECT_EQ(notes_.Take(), Lines());
  for (uint32_t i = 0; i < 6; ++i) Compute();
  notes_.Take();
  Compute();
  EXPECT_EQ(notes_.Take(), Lines{"schedule 4"});
}

TEST_F(WorkerCoreTest, TakesItsPlaceWhenNothingOfAStepIsPushed) {
  Start({.go = true});
  for (int i = 0; i < 3; ++i) Compute();  // the first gradient has left
  notes_.Take();
  board_.SetPlace(2, {.virtual_workers = {0, 2}, .start_clocks = {1, 0}});
  ASSERT_TRUE(core_->RefreshOrders().ok());
  EXPECT_EQ(core_->virtual_workers(), (std::vector<uint32_t>{1, 2}));
  EXPECT_FALSE(Beat().pausing());
  for (int i = 0; i < 5; ++i) Compute();
  notes_.Take();
  ASSERT_TRUE(core_->RefreshOrders().ok());
  EXPECT_EQ(notes_.Take(), (Lines{"take 0", "keep 2"}));
  EXPECT_EQ(core_->view(), 2u);
}

TEST_F(WorkerCoreTest, SavesResidualsAsVersionsArePassed) {
  options_.saves_residuals = true;
  options_.view = 3;
  Start({.go = true});
  notes_.Take();
  Step();
  const Lines notes = notes_.Take();
  EXPECT_EQ(std::count(notes.begin(), notes.end(), "save 1 for 1, view 3"), 1);
  EXPECT_EQ(std::count(notes.begin(), notes.end(), "save 2 for 1, view 3"), 1);
}

// The last weights may never come, if a server is lost.
TEST_F(WorkerCoreTest, SavesTheLastResidualsWithTheLastPush) {
  options_.config.mutable_sync()->set_policy(SyncConfig::ASP);
  options_.saves_residuals = true;
  options_.view = 3;
  options_.start_clocks = {4, 6};
  Start({.go = true, .pause = true, .final_version = 5, .final_clocks = {5, 5, 6}});
  EXPECT_THAT(notes_.Take(), testing::Contains("save 2 for 5, view 3"));
  for (uint32_t i = 0; i < 2 * kBlocks; ++i) Compute();
  EXPECT_THAT(notes_.Take(), testing::Contains("save 1 for 5, view 3"));
}

// A lane never answers a pull for a step that no virtual worker takes.
TEST_F(WorkerCoreTest, JoiningWorkerWithoutStepsPullsWeightsForEvaluation) {
  options_.config.mutable_sync()->set_policy(SyncConfig::ASP);
  options_.start_clocks = {4, 6};
  options_.eval_micro_batches = [](uint32_t, bool last) { return last ? 1 : 0; };
  Start({.go = true, .pause = true, .final_version = 5, .final_clocks = {5, 4, 6}});
  EXPECT_EQ(notes_.Take(), (Lines{"pull 0 for 6 exactly, whole", "pull 1 for 6 exactly, whole"}));
}

TEST_F(WorkerCoreTest, WorkerJoiningFinishedJobPullsNothing) {
  options_.config.mutable_sync()->set_policy(SyncConfig::ASP);
  options_.start_clocks = {4, 6};
  Start({.go = true, .pause = true, .final_version = 5, .final_clocks = {5, 4, 6}});
  EXPECT_EQ(notes_.Take(), Lines());
  EXPECT_EQ(core_->next(), WorkerCore::Next::kFinished);
  ASSERT_TRUE(core_->OnFinished().ok());
  EXPECT_TRUE(Beat().finished());
}

}  // namespace
}  // namespace tug
