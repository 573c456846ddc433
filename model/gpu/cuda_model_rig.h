// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_GPU_CUDA_MODEL_RIG_H_
#define TUG_MODEL_GPU_CUDA_MODEL_RIG_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/adamw.h"
#include "kernels/cuda/adamw_cuda.h"
#include "kernels/cuda/device/device.h"
#include "model/backend/cuda_device.h"
#include "model/transformer/create_model.h"
#include "model/transformer/model_rig.h"

namespace tug {

// For tests: the model of a ModelRig on a GPU, with the same weights and batches.
class CudaModelRig {
 public:
  // `options`: those of `cpu`, except fields that do not change weights or batch.
  CudaModelRig(ModelRig& cpu, const ModelOptions& options,
               GraphUse graphs = GraphUse::kWhereLaunchesDominate)
      : cpu_(cpu) {
    auto device = NewCudaDevice(0, graphs);
    TUG_CHECK_OK(device);
    device_ = *std::move(device);
    auto model = CreateModel(options, *device_);
    TUG_CHECK_OK(model);
    model_ = *std::move(model);
    for (const auto& weights : cpu.weights()) {
      const std::vector<float> nans(weights.size(), std::nanf(""));
      weights_.push_back(OnGpu(weights));
      gradients_.push_back(OnGpu(nans));
      m_.push_back(Zeros(weights.size()));
      v_.push_back(Zeros(weights.size()));
    }
    Bind();
  }
  explicit CudaModelRig(ModelRig& cpu) : CudaModelRig(cpu, cpu.options()) {}
  CudaModelRig(ModelRig& cpu, GraphUse graphs) : CudaModelRig(cpu, cpu.options(), graphs) {}

  LossSums LossAndGradient(const MicroBatch& batch) { return RunPass(*model_, batch); }
  LossSums EvaluationLosses() {
    RunForward(*model_, cpu_.Batch(/*training=*/false));
    return model_->losses();
  }
  std::vector<std::vector<float>> weights() const { return ReadAll(weights_); }
  std::vector<std::vector<float>> gradients() const { return ReadAll(gradients_); }

  // Updates all weights with the current gradients.
  void AdamWStep(const kernels::AdamWParams& params) {
    for (size_t b = 0; b < weights_.size(); ++b) {
      float* const w = weights_[b].As<float>();
      const absl::Status status = kernels::cuda::AdamWStep(
          params,
          {static_cast<int64_t>(Floats(weights_[b]).size()), gradients_[b].As<float>(), w, w,
           m_[b].As<float>(), v_[b].As<float>()},
          stream());
      EXPECT_TRUE(status.ok()) << status;
    }
    Bind();
  }

  template <typename T>
  kernels::cuda::DeviceBuffer OnGpu(const std::vector<T>& values) const {
    const size_t bytes = values.size() * sizeof(T);
    auto buffer = kernels::cuda::DeviceBuffer::Create(bytes);
    TUG_CHECK_OK(buffer);
    const absl::Status copied =
        kernels::cuda::CopyToDeviceAsync(buffer->data(), values.data(), bytes, stream());
    EXPECT_TRUE(copied.ok()) << copied;
    EXPECT_TRUE(stream().Synchronize().ok());
    return *std::move(buffer);
  }
  static std::span<float> Floats(const kernels::cuda::DeviceBuffer& buffer) {
    return {buffer.As<float>(), buffer.size_bytes() / sizeof(float)};
  }

  Model& model() { return *model_; }
  const CudaDevice& device() const { return *device_; }
  const kernels::cuda::Stream& stream() const { return device_->compute_stream(); }
  const kernels::cuda::DeviceBuffer& gradient(size_t block) const { return gradients_[block]; }

 private:
  void Bind() {
    for (int b = 0; b < model_->num_blocks(); ++b) {
      model_->BindWeights(b, {.fp32 = Floats(weights_[static_cast<size_t>(b)])});
      model_->BindGradient(b, Floats(gradients_[static_cast<size_t>(b)]));
    }
  }
  kernels::cuda::DeviceBuffer Zeros(size_t n) const { return OnGpu(std::vector<float>(n)); }
  std::vector<std::vector<float>> ReadAll(
      const std::vector<kernels::cuda::DeviceBuffer>& buffers) const {
    std::vector<std::vector<float>> all;
    for (const auto& buffer : buffers) {
      auto& values = all.emplace_back(Floats(buffer).size());
      const absl::Status copied = kernels::cuda::CopyToHostAsync(values.data(), buffer.data(),
                                                                 buffer.size_bytes(), stream());
      EXPECT_TRUE(copied.ok()) << copied;
    }
    EXPECT_TRUE(stream().Synchronize().ok());
    return all;
  }

  ModelRig& cpu_;
  std::unique_ptr<CudaDevice> device_;
  std::vector<kernels::cuda::DeviceBuffer> weights_, gradients_, m_, v_;  // by block
  std::unique_ptr<Model> model_;
};

}  // namespace tug

#endif  // TUG_MODEL_GPU_CUDA_MODEL_RIG_H_
