// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_TRANSFORMER_CREATE_MODEL_H_
#define TUG_MODEL_TRANSFORMER_CREATE_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "base/cpu/thread_pool.h"
#include "model/backend.h"
#include "model/model.h"

namespace tug {

// Makes a model on the CPU. `pool` must outlive the model. INVALID_ARGUMENT if a size is out of
// range or exceeds what dropout can number (2^34 attention weights or activations per sample); the
// message names the field.
absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelOptions& options, ThreadPool& pool);

// Makes a model on a device, which need not outlive it; what the device refers to must. Further
// errors: those of making a backend; RESOURCE_EXHAUSTED without memory for activations, with the
// settings that help.
absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelOptions& options,
                                                   ComputeDevice& device);

}  // namespace tug

#endif  // TUG_MODEL_TRANSFORMER_CREATE_MODEL_H_
