// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_DEVICE_QUEUE_H_
#define TUG_MODEL_BACKEND_DEVICE_QUEUE_H_

#include <cstdint>

#include "kernels/cuda/device/device.h"
#include "model/backend/cuda_device.h"

namespace tug {

// State shared by the models of one device.
struct DeviceQueue {
  int device;
  GraphUse graphs;
  kernels::cuda::Stream stream;
  uint64_t graph_launches = 0;
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_DEVICE_QUEUE_H_
