// SPDX-License-Identifier: Apache-2.0
// SoloDevice on the CPU.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory/lease.h"
#include "base/status_macros.h"
#include "model/job_model.h"
#include "model/transformer/create_model.h"
#include "optimizer/optimizer.h"
#include "worker/solo/solo_training.h"

namespace tug {
namespace {

// Elements per update task: short work for one thread.
constexpr uint64_t kTaskElements = uint64_t{1} << 15;

class SoloCpu final : public SoloDevice {
 public:
  SoloCpu(const SoloDeviceOptions& options, std::unique_ptr<Model> model, ThreadPool& pool)
      : table_(options.table),
        pool_(pool),
        model_(std::move(model)),
        optimizer_(MakeOptimizer(options.config.optimizer())) {
    for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
      const size_t bytes = table_.block_elements(block) * sizeof(float);
      BlockState& state = blocks_.emplace_back();
      state.weights = AlignedBuffer(bytes);
      state.gradient = AlignedBuffer(bytes);
      if (optimizer_->keeps_m()) state.m = AlignedBuffer(bytes);
      if (optimizer_->keeps_v()) state.v = AlignedBuffer(bytes);
      model_->BindGradient(static_cast<int>(block), state.gradient.floats());
    }
    for (uint32_t id = 0; id < table_.size(); ++id) {
      const Segment& segment = table_.segment(id);
      for (uint64_t begin = segment.begin; begin < segment.end; begin += kTaskElements) {
        tasks_.push_back({segment.block, begin, std::min(kTaskElements, segment.end - begin),
                          segment.weight_decay});
      }
    }
  }

  Model& model() override { return *model_; }
  std::string name() const override {
    return absl::StrCat("the CPU, ", pool_.threads(),
                        pool_.threads() == 1 ? " thread" : " threads");
  }
  uint64_t state_bytes() const override {
    uint64_t bytes = 0;
    for (const BlockState& s : blocks_) {
      bytes += s.weights.size_bytes() + s.m.size_bytes() + s.v.size_bytes();
    }
    return bytes;
  }
  uint64_t gradient_bytes() const override {
    uint64_t bytes = 0;
    for (const BlockState& s : blocks_) bytes += s.gradient.size_bytes();
    return bytes;
  }

  absl::Status SetWeights(std::span<const std::vector<float>> weights) override {
    for (uint32_t id = 0; id < table_.size(); ++id) {
      const Segment& segment = table_.segment(id);
      std::ranges::copy(weights[id], blocks_[segment.block].weights.floats().begin() +
                                         static_cast<ptrdiff_t>(segment.begin));
    }
    Bind();
    return absl::OkStatus();
  }

  absl::Status Update(uint64_t clock, float gradient_scale) override {
    pool_.ParallelFor(static_cast<int64_t>(tasks_.size()), [&](int64_t i) {
      const Task& task = tasks_[static_cast<size_t>(i)];
      BlockState& state = blocks_[task.block];
      const auto part = [&](AlignedBuffer& buffer) -> std::span<float> {
        if (buffer.size_bytes() == 0) return {};
        return buffer.floats().subspan(task.begin, task.elements);
      };
      optimizer_->Update({.t = clock,
                          .position = static_cast<double>(clock),
                          .weight_decay = task.weight_decay,
                          .gradient_scale = gradient_scale},
                         {.gradient = part(state.gradient),
                          .weights_in = part(state.weights),
                          .weights_out = part(state.weights),
                          .m = part(state.m),
                          .v = part(state.v)});
    });
    Bind();
    return absl::OkStatus();
  }

  absl::Status Begin(TraceTrack& track, const TraceEvent& about) override {
    span_.emplace(&track, about);
    return absl::OkStatus();
  }
  absl::Status End() override {
    span_.reset();
    return absl::OkStatus();
  }
  absl::Status Collect() override { return absl::OkStatus(); }

 private:
  struct BlockState {
    AlignedBuffer weights, gradient, m, v;
  };
  struct Task {
    uint32_t block;
    uint64_t begin, elements;
    bool weight_decay;
  };

  void Bind() {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      model_->BindWeights(static_cast<int>(b), {.fp32 = blocks_[b].weights.floats()});
    }
  }

  const SegmentTable& table_;
  ThreadPool& pool_;
  std::vector<BlockState> blocks_;
  std::vector<Task> tasks_;
  const std::unique_ptr<Model> model_;
  const std::unique_ptr<const Optimizer> optimizer_;
  std::optional<TraceSpan> span_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SoloDevice>> NewSoloCpu(const SoloDeviceOptions& options,
                                                       ThreadPool& pool) {
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, CreateModel(ModelOptionsOf(options.config), pool));
  return std::make_unique<SoloCpu>(options, std::move(model), pool);
}

}  // namespace tug
