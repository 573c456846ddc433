#ifndef TUG_MODEL_GPU_MODEL_H_
#define TUG_MODEL_GPU_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/gradient_encoder.h"
#include "model/model.h"
#include "model/pass_tracer.h"

namespace tug {

// A model on a GPU, or several, for a caller whose weights and gradients lie in the host's memory,
// and what a user wants to know of it.
struct GpuModel {
  std::unique_ptr<Model> model;
  std::string device;            // "NVIDIA H200, 139 GiB", "4 x NVIDIA H200, 139 GiB"
  uint64_t device_bytes = 0;     // of its memory, that of each, planned for the model
  bool encodes = false;          // by GpuModelOptions::encoder
  PassTracer* tracer = nullptr;  // of the model, and as long as it; null: of several GPUs
};

struct GpuModelOptions {
  ModelOptions model;
  bool bf16_weights = false;  // what is bound: bf16, with train.precision BF16 only; else FP32
  // What brings gradients to the host, of a model on one GPU; else, and with null, they are copied
  // as they are. Outlives the model.
  GradientEncoder* encoder = nullptr;
};

// Makes one, which is for the calling thread (model/multi_gpu_model.h). Programs choose.
// UNAVAILABLE: no GPU that can be used; UNIMPLEMENTED: nor ever by this build; FAILED_PRECONDITION:
// some that it is to take cannot be used.
using GpuModelMaker = std::function<absl::StatusOr<GpuModel>(const GpuModelOptions&)>;

}  // namespace tug

#endif  // TUG_MODEL_GPU_MODEL_H_
