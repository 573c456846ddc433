#ifndef TUG_KERNELS_CUDA_EMULATION_MEMORY_H_
#define TUG_KERNELS_CUDA_EMULATION_MEMORY_H_

#include <cstddef>
#include <optional>

namespace tug::kernels::emulation {

// What stands for a GPU's memory in tests: known by address, so that a kernel which is given a
// pointer of the host's is found out. All ones when it is new (NaN as a float), and watched: a
// write within 64 bytes before or behind it ends the process when it is freed. Thread-safe.

// Each byte of memory that nothing was written to.
inline constexpr int kUnwritten = 0xFF;

// At a boundary of 256 bytes, as cudaMalloc.
void* AllocateDeviceBytes(size_t bytes);
// Which the host may use too.
void* AllocatePinnedBytes(size_t bytes);
void FreeDeviceBytes(void* memory);
// As if it were new. `memory`: what AllocateDeviceBytes gave.
void SetUnwritten(void* memory);
// While it is on there is no more of it, of one device if that is said, and the two that allocate
// give null. Off at first.
void FailAllocations(bool fail, std::optional<int> device = std::nullopt);

// How many devices there are: 1 at first, or as many as the environment's TUG_EMULATED_GPUS says.
// Memory is that of the device which the allocating thread used, and to threads that use another it
// is no device memory; but pinned memory is to all.
int DeviceCount();
void SetDeviceCount(int count);
// Of the calling thread; 0 at first.
int ThisDevice();
void SetThisDevice(int device);

// Held by what the device does. Under --config=asan whoever else reads or writes device memory, the
// host that is, ends the process.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// Whether p lies in such memory, of this thread's device, or at its end.
bool IsDeviceMemory(const void* p);

// Whether bytes [p, p + bytes) lie in one piece of it.
bool IsDeviceRange(const void* p, size_t bytes);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_CUDA_EMULATION_MEMORY_H_
