// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {
namespace {

absl::Status NotBuilt() {
  return absl::UnavailableError(
      "no GPU: tug was built without CUDA; build it with deploy/build --config=cuda on a host with "
      "the CUDA toolkit");
}

}  // namespace

absl::Status CheckGpu() { return NotBuilt(); }
absl::Status UseDevice(int) { return NotBuilt(); }
std::vector<int> ListDevices() { return {}; }
absl::StatusOr<DeviceFacts> GetDeviceFacts() { return NotBuilt(); }
absl::StatusOr<size_t> SharedBytesPerBlock() { return NotBuilt(); }

absl::StatusOr<Event> Event::Create(EventUse) { return NotBuilt(); }
void Event::Destroy::operator()(void*) const {}
absl::Status Event::Record(const Stream&) const { return NotBuilt(); }
absl::Status Event::Synchronize() const { return NotBuilt(); }
absl::StatusOr<bool> Event::IsDone() const { return NotBuilt(); }
absl::StatusOr<absl::Duration> TimeBetween(const Event&, const Event&) { return NotBuilt(); }

absl::StatusOr<Stream> Stream::Create() { return NotBuilt(); }
void Stream::Destroy::operator()(void*) const {}
absl::Status Stream::Synchronize() const { return NotBuilt(); }
absl::Status Stream::WaitFor(const Event&) const { return NotBuilt(); }

absl::StatusOr<DeviceBuffer> DeviceBuffer::Create(size_t) { return NotBuilt(); }
void DeviceBuffer::Free::operator()(void*) const {}
absl::StatusOr<ScratchBuffer> ScratchBuffer::Create(size_t, const Stream&) { return NotBuilt(); }
void ScratchBuffer::Free::operator()(void*) const {}
absl::StatusOr<PinnedBuffer> PinnedBuffer::Create(size_t) { return NotBuilt(); }
void PinnedBuffer::Free::operator()(void*) const {}

absl::StatusOr<RegisteredMemory> RegisteredMemory::Create(void*, size_t) { return NotBuilt(); }
void RegisteredMemory::Unregister::operator()(void*) const {}

absl::Status CopyToDeviceAsync(void*, const void*, size_t, const Stream&) { return NotBuilt(); }
absl::Status CopyToHostAsync(void*, const void*, size_t, const Stream&) { return NotBuilt(); }
absl::Status CopyOnDeviceAsync(void*, const void*, size_t, const Stream&) { return NotBuilt(); }
absl::Status CopyRowsOnDeviceAsync(void*, size_t, const void*, size_t, size_t, size_t,
                                   const Stream&) {
  return NotBuilt();
}
absl::Status FillZeroAsync(void*, size_t, const Stream&) { return NotBuilt(); }

}  // namespace tug::kernels::cuda
