#ifndef TUG_EXCHANGE_CUDA_ENCODER_H_
#define TUG_EXCHANGE_CUDA_ENCODER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "exchange/device_encoder.h"

namespace tug {

// By the kernels of compression/x_cuda.h. Of the GPU's memory it takes frames of the largest block,
// and for each virtual worker, with error feedback, 4 bytes for each element of blocks of which
// something is encoded. UNIMPLEMENTED: in a build without CUDA.
absl::StatusOr<std::unique_ptr<DeviceEncoder>> NewCudaEncoder(DeviceEncoderOptions options);

}  // namespace tug

#endif  // TUG_EXCHANGE_CUDA_ENCODER_H_
