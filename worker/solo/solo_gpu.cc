// SPDX-License-Identifier: Apache-2.0
#include "worker/solo/solo_gpu.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/cuda/adamw_cuda.h"
#include "kernels/cuda/device/device.h"
#include "model/backend/cuda_device.h"
#include "model/backend/stream_spans.h"
#include "model/job_model.h"
#include "model/transformer/create_model.h"
#include "optimizer/adamw_params.h"

namespace tug {
namespace {

using kernels::cuda::DeviceBuffer;
using kernels::cuda::Stream;

class SoloGpu final : public SoloDevice {
 public:
  static absl::StatusOr<std::unique_ptr<SoloDevice>> Create(int gpu,
                                                            const SoloDeviceOptions& options);
  // Queued work uses the members.
  ~SoloGpu() override { model_->Synchronize().IgnoreError(); }

  Model& model() override { return *model_; }
  std::string name() const override { return name_; }
  uint64_t state_bytes() const override { return 3 * gradient_bytes(); }
  uint64_t gradient_bytes() const override {
    uint64_t bytes = 0;
    for (const BlockState& state : blocks_) bytes += state.gradient.size_bytes();
    return bytes;
  }
  absl::Status SetWeights(std::span<const std::vector<float>> weights) override;
  absl::Status Update(uint64_t clock, float gradient_scale) override;
  absl::Status Begin(TraceTrack& track, const TraceEvent& about) override {
    spans_.Announce(track, about);
    return spans_.Begin();
  }
  absl::Status End() override { return spans_.End(); }
  absl::Status Collect() override { return spans_.Collect(); }

 private:
  struct BlockState {
    DeviceBuffer weights, gradient, m, v;
  };
  // Consecutive segments of a block with the same weight decay.
  struct Run {
    uint32_t block;
    uint64_t begin, end;
    bool weight_decay;
  };

  SoloGpu(const SoloDeviceOptions& options, std::string name, std::unique_ptr<CudaDevice> device,
          std::unique_ptr<Model> model, std::vector<BlockState> blocks);

  const Stream& stream() const { return device_->compute_stream(); }
  void Bind();

  const OptimizerConfig optimizer_;
  const SegmentTable& table_;
  const std::string name_;
  const std::unique_ptr<CudaDevice> device_;
  const std::vector<BlockState> blocks_;
  std::vector<Run> runs_;
  const std::unique_ptr<Model> model_;
  StreamSpans spans_;
};

absl::StatusOr<std::unique_ptr<SoloDevice>> SoloGpu::Create(int gpu,
                                                            const SoloDeviceOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device, NewCudaDevice(gpu));
  ASSIGN_OR_RETURN(const kernels::cuda::DeviceFacts facts, kernels::cuda::GetDeviceFacts());
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   CreateModel(ModelOptionsOf(options.config), *device));
  std::vector<BlockState> blocks;
  for (uint32_t block = 0; block < options.table.num_blocks(); ++block) {
    const size_t bytes = options.table.block_elements(block) * sizeof(float);
    ASSIGN_OR_RETURN(DeviceBuffer weights, DeviceBuffer::Create(bytes));
    ASSIGN_OR_RETURN(DeviceBuffer gradient, DeviceBuffer::Create(bytes));
    ASSIGN_OR_RETURN(DeviceBuffer m, DeviceBuffer::Create(bytes));
    ASSIGN_OR_RETURN(DeviceBuffer v, DeviceBuffer::Create(bytes));
    for (const DeviceBuffer* zero : {&m, &v}) {
      RETURN_IF_ERROR(kernels::cuda::FillZeroAsync(zero->data(), bytes, device->compute_stream()));
    }
    blocks.push_back({std::move(weights), std::move(gradient), std::move(m), std::move(v)});
  }
  return std::unique_ptr<SoloDevice>(
      new SoloGpu(options, absl::StrCat(facts.name, ", ", facts.memory_bytes >> 30, " GiB"),
                  std::move(device), std::move(model), std::move(blocks)));
}

SoloGpu::SoloGpu(const SoloDeviceOptions& options, std::string name,
                 std::unique_ptr<CudaDevice> device, std::unique_ptr<Model> model,
                 std::vector<BlockState> blocks)
    : optimizer_(options.config.optimizer()),
      table_(options.table),
      name_(std::move(name)),
      device_(std::move(device)),
      blocks_(std::move(blocks)),
      model_(std::move(model)),
      spans_(stream()) {
  for (uint32_t id = 0; id < table_.size(); ++id) {
    const Segment& segment = table_.segment(id);
    const bool goes_on = !runs_.empty() && runs_.back().block == segment.block &&
                         runs_.back().end == segment.begin &&
                         runs_.back().weight_decay == segment.weight_decay;
    if (goes_on) {
      runs_.back().end = segment.end;
    } else {
      runs_.push_back({segment.block, segment.begin, segment.end, segment.weight_decay});
    }
  }
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const DeviceBuffer& gradient = blocks_[b].gradient;
    model_->BindGradient(static_cast<int>(b),
                         {gradient.As<float>(), gradient.size_bytes() / sizeof(float)});
  }
}

void SoloGpu::Bind() {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const DeviceBuffer& weights = blocks_[b].weights;
    model_->BindWeights(static_cast<int>(b),
                        {.fp32 = {weights.As<float>(), weights.size_bytes() / sizeof(float)}});
  }
}

absl::Status SoloGpu::SetWeights(std::span<const std::vector<float>> weights) {
  for (uint32_t id = 0; id < table_.size(); ++id) {
    const Segment& segment = table_.segment(id);
    RETURN_IF_ERROR(
        kernels::cuda::CopyToDeviceAsync(blocks_[segment.block].weights.As<float>() + segment.begin,
                                         weights[id].data(), segment.bytes(), stream()));
  }
  Bind();
  return stream().Synchronize();
}

absl::Status SoloGpu::Update(uint64_t clock, float gradient_scale) {
  UpdateStep step{
      .t = clock, .position = static_cast<double>(clock), .gradient_scale = gradient_scale};
  for (const Run& run : runs_) {
    const BlockState& state = blocks_[run.block];
    float* const weights = state.weights.As<float>() + run.begin;
    step.weight_decay = run.weight_decay;
    RETURN_IF_ERROR(kernels::cuda::AdamWStep(
        AdamWParamsAt(optimizer_, step),
        {static_cast<int64_t>(run.end - run.begin), state.gradient.As<float>() + run.begin, weights,
         weights, state.m.As<float>() + run.begin, state.v.As<float>() + run.begin},
        stream()));
  }
  Bind();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SoloDevice>> NewSoloGpu(int gpu, const SoloDeviceOptions& options) {
  if (options.config.optimizer().algorithm() != OptimizerConfig::ADAMW) {
    return absl::InvalidArgumentError("on a GPU optimizer.algorithm must be ADAMW");
  }
  return SoloGpu::Create(gpu, options);
}

}  // namespace tug
