// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {
namespace {

// Minimum compute capability: kernels are built for sm_80 and later (third_party/cuda.bzl).
constexpr int kMinComputeMajor = 8;

cudaStream_t Of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }
cudaEvent_t OfEvent(void* event) { return static_cast<cudaEvent_t>(event); }

// Status of an allocation of device memory.
absl::Status AllocationStatus(cudaError_t error, size_t wanted, absl::string_view call) {
  if (error != cudaErrorMemoryAllocation) return CudaStatus(error, call);
  cudaGetLastError();
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return absl::ResourceExhaustedError(absl::StrCat(call, ": ", wanted,
                                                   " bytes requested, but on the GPU only ", free,
                                                   " of ", total, " are free"));
}

absl::Status NoKernelsFor(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("no GPU supported by this build: ", what));
}

absl::StatusOr<int> Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute"));
  return value;
}

absl::Status Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                  const Stream& stream) {
  if (bytes == 0) return absl::OkStatus();
  return CudaStatus(cudaMemcpyAsync(to, from, bytes, kind, Of(stream)), "cudaMemcpyAsync");
}

// Memory pool from which this thread's device allocates scratch memory.
absl::StatusOr<cudaMemPool_t> ScratchPool() {
  int device = 0;
  RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "cudaGetDevice"));
  cudaMemPool_t pool = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool"));
  return pool;
}

// Keeps freed scratch memory in the device's pool: otherwise every synchronization would return it
// to the driver.
absl::Status KeepScratchMemory() {
  ASSIGN_OR_RETURN(const cudaMemPool_t pool, ScratchPool());
  uint64_t bytes = UINT64_MAX;
  return CudaStatus(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes),
                    "cudaMemPoolSetAttribute");
}

}  // namespace

absl::Status CudaStatus(int code, absl::string_view call) {
  const auto error = static_cast<cudaError_t>(code);
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // clears it: a library that asks for the last error would take it for its
                       // own
  const std::string text =
      absl::StrCat(call, ": ", cudaGetErrorString(error), " (CUDA error ", code, ")");
  switch (error) {
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorStubLibrary:
      return absl::UnavailableError(absl::StrCat("no GPU: ", text));
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorCompatNotSupportedOnDevice:
      return NoKernelsFor(text);
    case cudaErrorMemoryAllocation:
    case cudaErrorLaunchOutOfResources:
      return absl::ResourceExhaustedError(absl::StrCat("GPU: ", text));
    case cudaErrorInvalidConfiguration:
      return absl::InvalidArgumentError(absl::StrCat("GPU: ", text));
    default:
      return absl::InternalError(absl::StrCat("GPU: ", text));
  }
}

absl::Status CheckGpu() {
  int device = 0;
  RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "cudaGetDevice"));
  ASSIGN_OR_RETURN(const int major, Attribute(cudaDevAttrComputeCapabilityMajor, device));
  ASSIGN_OR_RETURN(const int minor, Attribute(cudaDevAttrComputeCapabilityMinor, device));
  if (major < kMinComputeMajor) {
    return NoKernelsFor(absl::StrCat("device ", device, " has compute capability ", major, ".",
                                     minor, ", below ", kMinComputeMajor, ".0"));
  }
  void* probe = nullptr;
  RETURN_IF_ERROR(AllocationStatus(cudaMalloc(&probe, 4), 4, "cudaMalloc"));
  return CudaStatus(cudaFree(probe), "cudaFree");
}

absl::Status UseDevice(int device) {
  return CudaStatus(cudaSetDevice(device), absl::StrCat("device ", device));
}

std::vector<int> ListDevices() {
  int count = 0;
  if (!CudaStatus(cudaGetDeviceCount(&count), "cudaGetDeviceCount").ok()) return {};
  std::vector<int> usable;
  for (int device = 0; device < count; ++device) {
    const auto major = Attribute(cudaDevAttrComputeCapabilityMajor, device);
    if (major.ok() && *major >= kMinComputeMajor) usable.push_back(device);
  }
  return usable;
}

absl::StatusOr<DeviceFacts> GetDeviceFacts() {
  int device = 0;
  RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "cudaGetDevice"));
  cudaDeviceProp properties;
  RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"));
  DeviceFacts facts{.name = properties.name,
                    .compute_major = properties.major,
                    .compute_minor = properties.minor,
                    .multiprocessors = properties.multiProcessorCount,
                    .shared_bytes_per_block = properties.sharedMemPerBlockOptin};
  // Return unused scratch memory to the driver first, so that it counts as free: destroyed models
  // and their graphs leave it in the pools.
  ASSIGN_OR_RETURN(const cudaMemPool_t pool, ScratchPool());
  RETURN_IF_ERROR(CudaStatus(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo"));
  RETURN_IF_ERROR(CudaStatus(cudaDeviceGraphMemTrim(device), "cudaDeviceGraphMemTrim"));
  size_t free = 0, total = 0;
  RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  facts.memory_bytes = total;
  facts.free_bytes = free;
  ASSIGN_OR_RETURN(const int khz, Attribute(cudaDevAttrMemoryClockRate, device));
  ASSIGN_OR_RETURN(const int bits, Attribute(cudaDevAttrGlobalMemoryBusWidth, device));
  facts.peak_bytes_per_second = 2.0 * khz * 1e3 * bits / 8;  // two transfers per clock cycle
  return facts;
}

absl::StatusOr<size_t> SharedBytesPerBlock() {
  int device = 0;
  RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "cudaGetDevice"));
  ASSIGN_OR_RETURN(const int bytes, Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<size_t>(bytes);
}

absl::StatusOr<Event> Event::Create(EventUse use) {
  cudaEvent_t event = nullptr;
  const unsigned flags =
      use == EventUse::kOrder ? cudaEventBlockingSync | cudaEventDisableTiming : cudaEventDefault;
  RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags"));
  return Event(event);
}
void Event::Destroy::operator()(void* event) const { cudaEventDestroy(OfEvent(event)); }
absl::Status Event::Record(const Stream& stream) const {
  return CudaStatus(cudaEventRecord(OfEvent(handle_.get()), Of(stream)), "cudaEventRecord");
}
absl::Status Event::Synchronize() const {
  return CudaStatus(cudaEventSynchronize(OfEvent(handle_.get())), "cudaEventSynchronize");
}
absl::StatusOr<bool> Event::IsDone() const {
  const cudaError_t error = cudaEventQuery(OfEvent(handle_.get()));
  if (error == cudaErrorNotReady) {
    cudaGetLastError();  // clears the error, which would otherwise persist
    return false;
  }
  RETURN_IF_ERROR(CudaStatus(error, "cudaEventQuery"));
  return true;
}

absl::StatusOr<absl::Duration> TimeBetween(const Event& begin, const Event& end) {
  float ms = 0;
  RETURN_IF_ERROR(CudaStatus(
      cudaEventElapsedTime(&ms, OfEvent(begin.handle_.get()), OfEvent(end.handle_.get())),
      "cudaEventElapsedTime"));
  return absl::Milliseconds(ms);
}

absl::StatusOr<Stream> Stream::Create() {
  RETURN_IF_ERROR(KeepScratchMemory());
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                             "cudaStreamCreateWithFlags"));
  return Stream(stream);
}
void Stream::Destroy::operator()(void* stream) const {
  cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}
absl::Status Stream::Synchronize() const {
  return CudaStatus(cudaStreamSynchronize(Of(*this)), "cudaStreamSynchronize");
}
absl::Status Stream::WaitFor(const Event& event) const {
  return CudaStatus(cudaStreamWaitEvent(Of(*this), OfEvent(event.handle_.get()), 0),
                    "cudaStreamWaitEvent");
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Create(size_t size_bytes) {
  void* data = nullptr;
  // cudaMalloc returns null for 0 bytes.
  const size_t bytes = size_bytes > 0 ? size_bytes : 1;
  RETURN_IF_ERROR(AllocationStatus(cudaMalloc(&data, bytes), bytes, "cudaMalloc"));
  return DeviceBuffer(data, size_bytes);
}
void DeviceBuffer::Free::operator()(void* data) const { cudaFree(data); }

absl::StatusOr<ScratchBuffer> ScratchBuffer::Create(size_t size_bytes, const Stream& stream) {
  void* data = nullptr;
  const size_t bytes = size_bytes > 0 ? size_bytes : 1;
  RETURN_IF_ERROR(
      AllocationStatus(cudaMallocAsync(&data, bytes, Of(stream)), bytes, "cudaMallocAsync"));
  return ScratchBuffer(data, stream.handle());
}
void ScratchBuffer::Free::operator()(void* data) const {
  cudaFreeAsync(data, static_cast<cudaStream_t>(stream));
}

absl::StatusOr<PinnedBuffer> PinnedBuffer::Create(size_t size_bytes) {
  void* data = nullptr;
  const size_t bytes = size_bytes > 0 ? size_bytes : 1;
  const cudaError_t error = cudaMallocHost(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return absl::ResourceExhaustedError(
        absl::StrCat("cudaMallocHost: ", bytes, " bytes requested, which the host cannot pin"));
  }
  RETURN_IF_ERROR(CudaStatus(error, "cudaMallocHost"));
  return PinnedBuffer(data, size_bytes);
}
void PinnedBuffer::Free::operator()(void* data) const { cudaFreeHost(data); }

absl::StatusOr<RegisteredMemory> RegisteredMemory::Create(void* host, size_t size_bytes) {
  int device = 0;
  RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "cudaGetDevice"));
  RETURN_IF_ERROR(
      CudaStatus(cudaHostRegister(host, size_bytes, cudaHostRegisterPortable), "cudaHostRegister"));
  return RegisteredMemory(host, device);
}
// cudaSetDevice first: a thread that has never used a GPU would otherwise create a context on
// device 0.
void RegisteredMemory::Unregister::operator()(void* host) const {
  cudaSetDevice(device);
  cudaHostUnregister(host);
}

absl::Status CopyToDeviceAsync(void* device, const void* host, size_t bytes, const Stream& stream) {
  return Copy(device, host, bytes, cudaMemcpyHostToDevice, stream);
}
absl::Status CopyToHostAsync(void* host, const void* device, size_t bytes, const Stream& stream) {
  return Copy(host, device, bytes, cudaMemcpyDeviceToHost, stream);
}
absl::Status CopyOnDeviceAsync(void* to, const void* from, size_t bytes, const Stream& stream) {
  return Copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
absl::Status CopyRowsOnDeviceAsync(void* to, size_t to_stride, const void* from, size_t from_stride,
                                   size_t row_bytes, size_t rows, const Stream& stream) {
  if (row_bytes == 0 || rows == 0) return absl::OkStatus();
  return CudaStatus(cudaMemcpy2DAsync(to, to_stride, from, from_stride, row_bytes, rows,
                                      cudaMemcpyDeviceToDevice, Of(stream)),
                    "cudaMemcpy2DAsync");
}
absl::Status FillZeroAsync(void* device, size_t bytes, const Stream& stream) {
  if (bytes == 0) return absl::OkStatus();
  return CudaStatus(cudaMemsetAsync(device, 0, bytes, Of(stream)), "cudaMemsetAsync");
}

}  // namespace tug::kernels::cuda
