#ifndef TUG_MODEL_DEVICE_QUEUE_H_
#define TUG_MODEL_DEVICE_QUEUE_H_

#include <cstdint>

#include "kernels/device.h"
#include "model/cuda_device.h"

namespace tug {

// What models of one device have in common.
struct DeviceQueue {
  int device;
  GraphUse graphs;
  kernels::cuda::Stream stream;
  uint64_t graph_launches = 0;
};

}  // namespace tug

#endif  // TUG_MODEL_DEVICE_QUEUE_H_
