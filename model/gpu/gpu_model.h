// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_GPU_GPU_MODEL_H_
#define TUG_MODEL_GPU_GPU_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/gpu/gradient_encoder.h"
#include "model/model.h"
#include "model/pass_tracer.h"

namespace tug {

// A model on one or more GPUs for a caller whose weights and gradients are in host memory, with
// user-facing facts about it.
struct GpuModel {
  std::unique_ptr<Model> model;
  std::string device;            // "NVIDIA H200, 139 GiB", "4 x NVIDIA H200, 139 GiB"
  uint64_t device_bytes = 0;     // memory of each GPU planned for the model
  bool encodes = false;          // gradients are encoded by GpuModelOptions::encoder
  PassTracer* tracer = nullptr;  // owned by the model; null with several GPUs
};

struct GpuModelOptions {
  ModelOptions model;
  bool bf16_weights = false;  // bound weights: bf16 (train.precision BF16 only), else FP32
  // Sends gradients to the host, for a model on one GPU. Null, or several GPUs: they are copied as
  // they are. Must outlive the model.
  GradientEncoder* encoder = nullptr;
};

// Makes a model that is used by the calling thread (model/gpu/multi_gpu_model.h); programs choose
// the implementation. UNAVAILABLE: no usable GPU; UNIMPLEMENTED: this build has no GPU support;
// FAILED_PRECONDITION: some of the requested GPUs are not usable.
using GpuModelMaker = std::function<absl::StatusOr<GpuModel>(const GpuModelOptions&)>;

}  // namespace tug

#endif  // TUG_MODEL_GPU_GPU_MODEL_H_
