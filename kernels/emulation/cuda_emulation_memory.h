// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMULATION_CUDA_EMULATION_MEMORY_H_
#define TUG_KERNELS_EMULATION_CUDA_EMULATION_MEMORY_H_

#include <cstddef>
#include <optional>

namespace tug::kernels::emulation {

// Stand-in for a GPU's memory in tests. It is known by address, so that a host pointer passed to a
// kernel is detected. All ones when allocated (NaN as a float), and guarded: a write within 64
// bytes before or behind it ends the process when it is freed. Thread-safe.

// Value of each byte of unwritten memory.
inline constexpr int kUnwritten = 0xFF;

// 256-byte aligned, like cudaMalloc.
void* AllocateDeviceBytes(size_t bytes);
// Pinned memory, which the host may use, too.
void* AllocatePinnedBytes(size_t bytes);
void FreeDeviceBytes(void* memory);
// Resets memory to unwritten. `memory`: from AllocateDeviceBytes.
void SetUnwritten(void* memory);
// While on, memory is exhausted (on one device, if given) and both allocation functions return
// null. Off initially.
void FailAllocations(bool fail, std::optional<int> device = std::nullopt);

// Number of devices: initially 1, or the value of TUG_EMULATED_GPUS in the environment. Memory
// belongs to the device of the allocating thread; to threads of another device it is not device
// memory. Pinned memory belongs to all devices.
int DeviceCount();
void SetDeviceCount(int count);
// Device of the calling thread; initially 0.
int ThisDevice();
void SetThisDevice(int device);

// Held while the device works. Under --config=asan, an access to device memory by others, i.e. by
// the host, ends the process.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// Whether p is in memory of this thread's device, or at the end of an allocation.
bool IsDeviceMemory(const void* p);

// Whether bytes [p, p + bytes) are within one allocation.
bool IsDeviceRange(const void* p, size_t bytes);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_EMULATION_CUDA_EMULATION_MEMORY_H_
