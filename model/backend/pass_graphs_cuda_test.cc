// SPDX-License-Identifier: Apache-2.0
#include "model/backend/pass_graphs.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "kernels/cuda/add_cuda.h"
#include "kernels/cuda/device/cuda_test_support.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/cuda_emulation_late.h"
#endif

namespace tug {
namespace {

using kernels::cuda::DeviceBuffer;
using kernels::cuda::OnDevice;
using kernels::cuda::Stream;

constexpr int64_t kN = 300;

std::vector<float> All(float value) { return std::vector<float>(kN, value); }

class PassGraphsCuda : public kernels::cuda::CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (!IsSkipped()) x_.emplace(All(1), stream());
  }

  void Make(GraphUse use) {
    auto stream = Stream::Create();
    ASSERT_TRUE(stream.ok()) << stream.status();
    queue_.reset(new DeviceQueue{.device = 0, .graphs = use, .stream = *std::move(stream)});
    graphs_.emplace(*queue_);
  }
  // x = 2 x, `count` times.
  CollectedPass Doublings(int count) {
    CollectedPass pass;
    for (int i = 0; i < count; ++i) {
      pass.Add(
          "doubling",
          [this](float* x, int64_t n) { return kernels::cuda::Add(x, x, x, n, queue_->stream); },
          x_->data(), kN);
    }
    return pass;
  }
  void Queue(const CollectedPass& pass) {
    const absl::Status queued = graphs_->Queue(pass);
    EXPECT_TRUE(queued.ok()) << queued;
  }
  float Result() {
    EXPECT_TRUE(queue_->stream.Synchronize().ok());
    const std::vector<float> values = x_->Read();
    EXPECT_EQ(values, All(values.front()));
    return values.front();
  }

  std::optional<OnDevice<float>> x_;
  std::unique_ptr<DeviceQueue> queue_;
  std::optional<PassGraphs> graphs_;
};

TEST_F(PassGraphsCuda, APassThatComesAgainIsLaunchedAsAGraph) {
  Make(GraphUse::kAlways);
  for (int i = 0; i < 5; ++i) Queue(Doublings(2));
  EXPECT_EQ(Result(), 1 << 10);
  EXPECT_EQ(queue_->graph_launches, 4u);
  Queue(Doublings(3));
  Queue(Doublings(2));
  Queue(Doublings(3));
  EXPECT_EQ(Result(), 1 << 18);
  EXPECT_EQ(queue_->graph_launches, 6u);
  graphs_->Forget();
  Queue(Doublings(2));
  EXPECT_EQ(queue_->graph_launches, 6u);
  EXPECT_EQ(Result(), 1 << 20);
}

TEST_F(PassGraphsCuda, NeverMeansNever) {
  Make(GraphUse::kNever);
  for (int i = 0; i < 5; ++i) Queue(Doublings(2));
  EXPECT_EQ(Result(), 1 << 10);
  EXPECT_EQ(queue_->graph_launches, 0u);
}

TEST_F(PassGraphsCuda, AnOperationAloneNeedsNoGraph) {
  Make(GraphUse::kAlways);
  for (int i = 0; i < 5; ++i) Queue(Doublings(1));
  EXPECT_EQ(Result(), 1 << 5);
  EXPECT_EQ(queue_->graph_launches, 0u);
}

// Like passes of a model with dropout, whose step is an argument.
TEST_F(PassGraphsCuda, OtherArgumentsAreAnotherPass) {
  Make(GraphUse::kAlways);
  for (int i = 0; i < 2; ++i) Queue(Doublings(2));
  EXPECT_EQ(queue_->graph_launches, 1u);
  for (uint32_t step = 0; step < 3000; ++step) {
    CollectedPass pass;
    const auto nothing = [](const kernels::DropoutKey&) { return absl::OkStatus(); };
    pass.Add("dropout", nothing, kernels::DropoutKey{.step = step});
    pass.Add("dropout", nothing, kernels::DropoutKey{.step = step, .site = 1});
    Queue(pass);
  }
  EXPECT_EQ(queue_->graph_launches, 1u);
  Queue(Doublings(2));  // the passes above did not evict its graph
  EXPECT_EQ(queue_->graph_launches, 2u);
  EXPECT_EQ(Result(), 1 << 6);
}

// On a real GPU it is unknown which is faster, so only the result is checked.
TEST_F(PassGraphsCuda, UsesGraphsWhereTheHostIsSlower) {
  Make(GraphUse::kWhereLaunchesDominate);
  for (int i = 0; i < 6; ++i) Queue(Doublings(2));
  EXPECT_EQ(Result(), 1 << 12);
#if TUG_CUDA_EMULATED
  if (!kernels::emulation::StreamsAreLate()) {
    EXPECT_EQ(queue_->graph_launches, 3u);
  }
#endif
}

#if TUG_CUDA_EMULATED
TEST_F(PassGraphsCuda, UsesNoGraphsWhereTheGpuIsSlower) {
  const kernels::emulation::LateStreams latest(/*seed=*/0);
  Make(GraphUse::kWhereLaunchesDominate);
  for (int i = 0; i < 6; ++i) Queue(Doublings(2));
  EXPECT_EQ(Result(), 1 << 12);
  EXPECT_EQ(queue_->graph_launches, 0u);
  graphs_.reset();
  queue_.reset();
}

// Controlled by the last operation, which may wait for the GPU to finish the others.
TEST_F(PassGraphsCuda, ThereAreNoneBeforeTheGpuHasWaitedTwiceRunning) {
  const kernels::emulation::LateStreams latest(/*seed=*/0);
  Make(GraphUse::kWhereLaunchesDominate);
  bool gpu_waits = false;
  CollectedPass pass = Doublings(1);
  pass.Add(
      "last",
      [&](float* x, int64_t n) -> absl::Status {
        if (gpu_waits) RETURN_IF_ERROR(queue_->stream.Synchronize());
        return kernels::cuda::Add(x, x, x, n, queue_->stream);
      },
      x_->data(), kN);
  for (const bool waits : {true, true, false, true, true, false}) {
    EXPECT_EQ(queue_->graph_launches, 0u);
    gpu_waits = waits;
    Queue(pass);
  }
  EXPECT_EQ(queue_->graph_launches, 1u);
  EXPECT_EQ(Result(), 1 << 12);
  graphs_.reset();
  queue_.reset();
}
#endif

TEST_F(PassGraphsCuda, QueuesPassThatCannotBeCapturedWithoutGraph) {
  Make(GraphUse::kAlways);
  CollectedPass pass = Doublings(2);
  pass.Add("memory", [] { return DeviceBuffer::Create(4).status(); });
  for (int i = 0; i < 3; ++i) Queue(pass);
  EXPECT_EQ(Result(), 1 << 6);
  for (int i = 0; i < 3; ++i) Queue(Doublings(2));
  EXPECT_EQ(Result(), 1 << 12);
  EXPECT_EQ(queue_->graph_launches, 0u);
}

TEST_F(PassGraphsCuda, AnErrorNamesItsOperation) {
  Make(GraphUse::kAlways);
  int calls = 0;
  CollectedPass pass = Doublings(2);
  pass.Add("third", [&]() -> absl::Status {
    return ++calls < 2 ? absl::OkStatus() : absl::UnavailableError("no more");
  });
  EXPECT_TRUE(graphs_->Queue(pass).ok());
  EXPECT_EQ(graphs_->Queue(pass), absl::UnavailableError("third: no more"));
}

TEST(CollectedPass, EveryArgumentCounts) {
  std::vector<std::string> keys;
  const auto add = [&](absl::string_view name, const auto&... arguments) {
    CollectedPass pass;
    pass.Add(
        name, [](const auto&...) { return absl::OkStatus(); }, arguments...);
    keys.push_back(pass.key());
  };
  const kernels::AttentionShape shape = {.batch = 1, .queries = 2, .keys = 3};
  kernels::AttentionShape causal = shape;
  causal.causal = true;
  float memory[2];
  kernels::AttentionOperands<float> operands = {memory, memory, memory, 1, 1};
  add("a", 1.0f, 2);
  add("a", 1.5f, 2);
  add("a", 1.0f, 3);
  add("a", 1.0f);
  add("a", nullptr, 2);
  add("a", &memory[0]);
  add("a", &memory[1]);
  add("a", shape);
  add("a", causal);
  add("a", operands);
  operands.v = &memory[1];
  add("a", operands);
  const auto attention = [&](auto set) {
    kernels::AttentionShape other = shape;
    set(other);
    add("a", other);
  };
  attention([](auto& s) { s.batch = 5; });
  attention([](auto& s) { s.queries = 5; });
  attention([](auto& s) { s.keys = 5; });
  attention([](auto& s) { s.heads = 5; });
  attention([](auto& s) { s.head_dim = 5; });
  const int32_t counts = 1;
  attention([&](auto& s) { s.key_counts = &counts; });
  const auto with = [&](auto set) {
    kernels::AttentionOperands<float> other = operands;
    set(other);
    add("a", other);
  };
  with([&](auto& o) { o.q = &memory[1]; });
  with([&](auto& o) { o.k = &memory[1]; });
  with([](auto& o) { o.q_stride = 2; });
  with([](auto& o) { o.kv_stride = 2; });
  add("a", kernels::DropoutKey{});
  add("a", kernels::DropoutKey{.step = 1});
  add("a", kernels::DropoutKey{.sample = 1});
  add("a", kernels::DropoutKey{.site = 1});
  add("a", kernels::DropoutKey{.seed = 1});
  add("a", kernels::DropoutKey{.seed = 1, .sample = 1});
  add("a", kernels::Objective{.label_smoothing = 0.1f});
  add("a", kernels::Objective{.z_loss = 0.1f});
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " and " << j;
  }
  add("a", 1.0f, 2);
  EXPECT_EQ(keys.back(), keys.front());
}

}  // namespace
}  // namespace tug
