// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_ENCODE_CUDA_ENCODER_H_
#define TUG_EXCHANGE_ENCODE_CUDA_ENCODER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "exchange/encode/device_encoder.h"

namespace tug {

// Encodes with the kernels of compression/cuda. GPU memory: frames of the largest block, and with
// error feedback 4 bytes per virtual worker and element of blocks that have encoded segments.
// UNIMPLEMENTED in a build without CUDA.
absl::StatusOr<std::unique_ptr<DeviceEncoder>> NewCudaEncoder(DeviceEncoderOptions options);

}  // namespace tug

#endif  // TUG_EXCHANGE_ENCODE_CUDA_ENCODER_H_
