// SPDX-License-Identifier: Apache-2.0
#include "model/replicated_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace tug {
namespace {

// Calls that replicas receive, and their scripted behaviour.
struct Script {
  explicit Script(size_t replicas) : calls(replicas), batches(replicas) {
    for (size_t i = 0; i < replicas; ++i) {
      options.names.push_back(absl::StrCat("device ", i));
      losses.push_back(0);
    }
    options.abort = [this] {
      if (!aborts.exchange(true)) aborted.Notify();
    };
    options.join = [](int) { return absl::OkStatus(); };
  }

  ReplicatedModelOptions options;
  std::vector<std::vector<std::string>> calls;  // by replica
  std::vector<MicroBatch> batches;              // by replica: the last one
  std::vector<double> losses;
  int fails = -1;  // number of a replica: Backward fails
  int waits = -1;  // number of a replica: AwaitGradient waits for the abort
  std::atomic<bool> aborts = false;
  absl::Notification aborted;
};

class Replica final : public Model {
 public:
  Replica(Script& script, int number)
      : script_(script), number_(number), thread_(std::this_thread::get_id()) {
    for (const char* name : {"embedding", "head"}) blocks_.add_blocks()->set_name(name);
  }
  ~Replica() override { Count("gone"); }

  const BlockTable& blocks() const override { return blocks_; }
  std::optional<int> tied_block() const override { return 0; }
  void BindWeights(int block, WeightsView weights) override {
    Count(absl::StrCat("weights ", block, " of ", weights.size()));
  }
  void ReleaseWeights(int block) override { Count(absl::StrCat("release ", block)); }
  uint64_t weight_copy_bytes() const override { return 0; }
  void BindGradient(int block, std::span<float> gradient) override {
    Count(absl::StrCat("gradient ", block, " of ", gradient.size()));
  }
  void Start(const MicroBatch& batch) override {
    Count(absl::StrCat("start ", batch.samples));
    tokens_.assign(batch.tokens.begin(), batch.tokens.end());
    script_.batches[index()] = batch;
    script_.batches[index()].tokens = tokens_;
  }
  void Forward(int block) override { Count(absl::StrCat("forward ", block)); }
  void Backward(int block) override {
    Count(absl::StrCat("backward ", block));
    if (script_.fails == number_) status_ = absl::DataLossError("broken");
  }
  LossSums losses() const override {
    return {.loss = script_.losses[index()], .targets = 2, .correct = 1};
  }
  absl::Status AwaitGradient(int block) override {
    Count(absl::StrCat("await ", block));
    if (script_.waits == number_) script_.aborted.WaitForNotification();
    return absl::OkStatus();
  }
  absl::Status status() const override { return status_; }
  void Logits(std::span<const int32_t>, std::span<float> logits) override {
    logits[0] = static_cast<float>(number_ + 1);
  }
  void Logits(const MicroBatch&, int, std::span<float> logits) override {
    logits[0] = static_cast<float>(number_ + 2);
  }

 private:
  size_t index() const { return static_cast<size_t>(number_); }
  void Count(const std::string& call) {
    EXPECT_EQ(std::this_thread::get_id(), thread_) << call;
    script_.calls[index()].push_back(call);
  }

  Script& script_;
  const int number_;
  const std::thread::id thread_;
  BlockTable blocks_;
  std::vector<int32_t> tokens_;
  absl::Status status_;
};

std::unique_ptr<Model> MakeModel(Script& script) {
  script.options.make = [&script](int number) -> absl::StatusOr<std::unique_ptr<Model>> {
    return std::make_unique<Replica>(script, number);
  };
  auto model = NewReplicatedModel(script.options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(ReplicatedModel, CutsAMicroBatchIntoPartsThatFollowEachOther) {
  Script script(3);
  const auto model = MakeModel(script);
  for (const int samples : {5, 2}) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < samples * 2; ++i) tokens.push_back(i);
    MicroBatch batch{.samples = samples, .tokens = tokens, .training = true, .partial = true};
    batch.dropout = {.seed = 7, .step = 3, .first_sample = 10};
    model->Start(batch);
    std::fill(tokens.begin(), tokens.end(), -1);  // the caller may change it after Start
    ASSERT_TRUE(model->Synchronize().ok());
    const std::vector<int> expected = samples == 5 ? std::vector{2, 2, 1} : std::vector{1, 1, 0};
    int first = 0;
    for (size_t i = 0; i < 3; ++i) {
      const MicroBatch& part = script.batches[i];
      EXPECT_EQ(part.samples, expected[i]);
      EXPECT_EQ(part.dropout.first_sample, 10u + static_cast<uint32_t>(first));
      EXPECT_EQ(part.dropout.seed, 7u);
      EXPECT_TRUE(part.training && part.partial && !part.accumulate);
      ASSERT_EQ(part.tokens.size(), static_cast<size_t>(2 * expected[i]));
      if (!part.tokens.empty()) {
        EXPECT_EQ(part.tokens[0], 2 * first);
      }
      first += part.samples;
    }
  }
}

TEST(ReplicatedModel, MakesEveryCallOfEveryReplicaInOrderOnItsThread) {
  Script script(2);
  auto model = MakeModel(script);
  EXPECT_EQ(model->num_blocks(), 2);
  EXPECT_EQ(model->tied_block(), 0);
  EXPECT_TRUE(model->queues());
  std::vector<float> values(6);
  model->BindWeights(0, {.fp32 = values});
  model->BindGradient(1, values);
  model->Start({.samples = 2});
  model->Forward(0);
  model->Forward(1);
  model->Backward(1);
  EXPECT_TRUE(model->AwaitGradient(1).ok());
  model->ReleaseWeights(0);
  model->Backward(0);
  model.reset();
  const std::vector<std::string> expected = {
      "weights 0 of 6", "gradient 1 of 6", "start 1",   "forward 0",  "forward 1",
      "backward 1",     "await 1",         "release 0", "backward 0", "gone"};
  EXPECT_EQ(script.calls[0], expected);
  EXPECT_EQ(script.calls[1], expected);
}

// 1e16 + 1 is 1e16.
TEST(ReplicatedModel, AddsLossesInTheOrderOfReplicas) {
  Script script(3);
  script.losses = {1e16, 1, -1e16};
  const auto model = MakeModel(script);
  const LossSums sums = model->losses();
  EXPECT_EQ(sums.loss, 0);
  EXPECT_EQ(sums.targets, 6u);
  EXPECT_EQ(sums.correct, 3u);
  std::vector<float> logits(1);
  model->Logits(std::span<const int32_t>(), logits);
  EXPECT_EQ(logits[0], 1) << "the first one's";
}

TEST(ReplicatedModel, AnErrorOfOneEndsTheWaitsOfTheOthers) {
  Script script(2);
  script.fails = 1;
  script.waits = 0;
  const auto model = MakeModel(script);
  model->Start({.samples = 2});
  model->Backward(1);
  const absl::Status status = model->AwaitGradient(1);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(status.message(), "device 1: broken");
  EXPECT_EQ(model->status(), status);
  EXPECT_EQ(model->Synchronize(), status);
}

TEST(ReplicatedModel, WaitBeyondTimeoutIsAnError) {
  Script script(2);
  script.waits = 1;
  script.options.timeout = absl::Milliseconds(5);
  const auto model = MakeModel(script);
  const absl::Status status = model->AwaitGradient(0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(script.aborts);
}

TEST(ReplicatedModel, IsNotMadeWhereOneReplicaIsNot) {
  Script script(3);
  script.options.make = [&](int number) -> absl::StatusOr<std::unique_ptr<Model>> {
    if (number > 0) return absl::UnavailableError(absl::StrCat("none ", number));
    return std::make_unique<Replica>(script, number);
  };
  script.options.join = [](int) -> absl::Status { return absl::InternalError("joined"); };
  const absl::Status status = NewReplicatedModel(script.options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), "device 1: none 1");
  EXPECT_EQ(script.calls[0], std::vector<std::string>{"gone"});
}

TEST(ReplicatedModel, IsNotMadeWhereTheHostHasNoMemory) {
  Script script(2);
  script.options.make = [&](int number) -> absl::StatusOr<std::unique_ptr<Model>> {
    if (number == 1) throw std::bad_alloc();
    return std::make_unique<Replica>(script, number);
  };
  const absl::Status status = NewReplicatedModel(script.options).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(ReplicatedModel, AnErrorOfJoiningIsItsOwn) {
  Script script(2);
  script.options.make = [&](int number) -> absl::StatusOr<std::unique_ptr<Model>> {
    return std::make_unique<Replica>(script, number);
  };
  script.options.join = [&](int number) -> absl::Status {
    if (number == 1) return absl::InternalError("apart");
    script.aborted.WaitForNotification();
    return absl::OkStatus();
  };
  const absl::Status status = NewReplicatedModel(script.options).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_EQ(status.message(), "device 1: apart");
}

}  // namespace
}  // namespace tug
