// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/cuda/device/device.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/cuda_emulation_memory.h"
#endif

#if TUG_CUDA
#include <driver_types.h>

#include "gmock/gmock.h"
#endif

namespace tug::kernels::cuda {
namespace {

using Device = CudaTest;

TEST(CheckGpu, SaysWhyThereIsNone) {
  const absl::Status status = CheckGpu();
  if (status.ok()) GTEST_SKIP() << "there is a GPU";
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(std::string(status.message()).substr(0, 6), "no GPU") << status;
  EXPECT_TRUE(absl::IsUnavailable(Stream::Create().status()));
  EXPECT_TRUE(absl::IsUnavailable(Event::Create().status()));
  EXPECT_TRUE(absl::IsUnavailable(DeviceBuffer::Create(1).status()));
  EXPECT_TRUE(absl::IsUnavailable(PinnedBuffer::Create(1).status()));
  EXPECT_TRUE(absl::IsUnavailable(GetDeviceFacts().status()));
}

#if TUG_CUDA
TEST(CudaStatus, AGpuWithoutKernelsIsNoUsableGpu) {
  for (const cudaError_t error :
       {cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion,
        cudaErrorInvalidDeviceFunction, cudaErrorCompatNotSupportedOnDevice}) {
    const absl::Status status = CudaStatus(error, "launch");
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::StartsWith("no GPU supported by this build: launch: "));
  }
  EXPECT_TRUE(absl::IsInternal(CudaStatus(cudaErrorLaunchFailure, "launch")));
}
#endif

using Pages = std::unique_ptr<void, decltype(&std::free)>;
Pages NewPages(size_t bytes) { return Pages(std::aligned_alloc(4096, bytes), std::free); }

TEST_F(Device, CopiesThereAndBack) {
  for (const size_t bytes : {0, 1, 31, 1023, 1 << 20}) {
    auto host = PinnedBuffer::Create(bytes);
    auto back = PinnedBuffer::Create(bytes);
    auto one = DeviceBuffer::Create(bytes);
    auto two = DeviceBuffer::Create(bytes);
    ASSERT_TRUE(host.ok() && back.ok() && one.ok() && two.ok());
    EXPECT_EQ(one->size_bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(one->data()) % 256, 0u);
    uint8_t* const p = host->As<uint8_t>();
    for (size_t i = 0; i < bytes; ++i) p[i] = static_cast<uint8_t>(i * 7);
    ASSERT_TRUE(CopyToDeviceAsync(one->data(), p, bytes, stream()).ok());
    ASSERT_TRUE(CopyOnDeviceAsync(two->data(), one->data(), bytes, stream()).ok());
    ASSERT_TRUE(FillZeroAsync(one->data(), bytes, stream()).ok());
    ASSERT_TRUE(CopyToHostAsync(back->data(), two->data(), bytes, stream()).ok());
    ASSERT_TRUE(stream().Synchronize().ok());
    EXPECT_TRUE(std::equal(p, p + bytes, back->As<uint8_t>()));
    ASSERT_TRUE(CopyToHostAsync(back->data(), one->data(), bytes, stream()).ok());
    ASSERT_TRUE(stream().Synchronize().ok());
    EXPECT_EQ(std::accumulate(back->As<uint8_t>(), back->As<uint8_t>() + bytes, 0), 0);
  }
}

TEST_F(Device, CopiesRows) {
  constexpr size_t kRows = 5, kWidth = 7, kFrom = 19, kTo = 11;
  std::vector<uint8_t> host(kRows * kFrom), back(kRows * kTo), expected(kRows * kTo);
  std::iota(host.begin(), host.end(), 1);
  for (size_t row = 0; row < kRows; ++row) {
    std::copy_n(&host[row * kFrom], kWidth, &expected[row * kTo]);
  }
  const auto from = DeviceBuffer::Create(host.size());
  const auto to = DeviceBuffer::Create(back.size());
  ASSERT_TRUE(from.ok() && to.ok());
  ASSERT_TRUE(CopyToDeviceAsync(from->data(), host.data(), host.size(), stream()).ok());
  ASSERT_TRUE(FillZeroAsync(to->data(), back.size(), stream()).ok());
  for (const size_t rows : {size_t{0}, kRows}) {
    ASSERT_TRUE(
        CopyRowsOnDeviceAsync(to->data(), kTo, from->data(), kFrom, kWidth, rows, stream()).ok());
    ASSERT_TRUE(CopyToHostAsync(back.data(), to->data(), back.size(), stream()).ok());
    ASSERT_TRUE(stream().Synchronize().ok());
    EXPECT_EQ(back, rows == 0 ? std::vector<uint8_t>(back.size()) : expected);
  }
}

// The other stream reads the end of a copy that takes milliseconds: without the wait it would see
// zeros. The memory is pinned, since other memory may block the host until the copy is done.
TEST_F(Device, AnotherStreamWaitsForAnEvent) {
  const auto other = Stream::Create();
  const auto event = Event::Create();
  ASSERT_TRUE(other.ok() && event.ok());
  constexpr size_t kBytes = 64 << 20, kEnd = 64;
  const auto memory = DeviceBuffer::Create(kBytes);
  const auto ones = PinnedBuffer::Create(kBytes);
  const auto back = PinnedBuffer::Create(kEnd);
  ASSERT_TRUE(memory.ok() && ones.ok() && back.ok());
  std::memset(ones->data(), 1, kBytes);
  ASSERT_TRUE(FillZeroAsync(memory->data(), kBytes, stream()).ok());
  ASSERT_TRUE(stream().Synchronize().ok());
  ASSERT_TRUE(CopyToDeviceAsync(memory->data(), ones->data(), kBytes, stream()).ok());
  ASSERT_TRUE(event->Record(stream()).ok());
  ASSERT_TRUE(other->WaitFor(*event).ok());
  ASSERT_TRUE(
      CopyToHostAsync(back->data(), memory->As<uint8_t>() + kBytes - kEnd, kEnd, *other).ok());
  ASSERT_TRUE(other->Synchronize().ok());
  EXPECT_EQ(std::memcmp(back->data(), ones->data(), kEnd), 0);
  const auto done = event->IsDone();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(*done);
}

// Pages can be registered once, and unregistered by any thread.
TEST_F(Device, RegistersPagesOfTheHost) {
  constexpr size_t kBytes = 16 * 4096;
  const Pages pages = NewPages(kBytes);
  ASSERT_NE(pages, nullptr);
  for (int time = 0; time < 2; ++time) {
    auto registered = RegisteredMemory::Create(pages.get(), kBytes);
    ASSERT_TRUE(registered.ok()) << registered.status();
    for (const size_t page : {0, 3}) {
      auto* const begin = static_cast<std::byte*>(pages.get()) + page * 4096;
      EXPECT_TRUE(absl::IsInternal(RegisteredMemory::Create(begin, 4096).status())) << page;
    }
    std::thread([gone = *std::move(registered)] {}).join();
  }
#if TUG_CUDA_EMULATED
  auto* const off = static_cast<std::byte*>(pages.get()) + 64;
  EXPECT_TRUE(absl::IsInternal(RegisteredMemory::Create(off, 4096).status()));
#endif
}

TEST_F(Device, TimeBetweenEventsIsNotNegative) {
  const auto begin = Event::Create(EventUse::kTime);
  const auto end = Event::Create(EventUse::kTime);
  ASSERT_TRUE(begin.ok() && end.ok());
  EXPECT_FALSE(TimeBetween(*begin, *end).ok());  // not recorded
  ASSERT_TRUE(begin->Record(stream()).ok());
  ASSERT_TRUE(end->Record(stream()).ok());
  ASSERT_TRUE(end->Synchronize().ok());
  const auto time = TimeBetween(*begin, *end);
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_GE(*time, absl::ZeroDuration());
}

TEST_F(Device, TooMuchMemoryIsAnErrorThatNamesBytes) {
  const auto buffer = DeviceBuffer::Create(size_t{1} << 50);
  EXPECT_TRUE(absl::IsResourceExhausted(buffer.status())) << buffer.status();
  EXPECT_NE(buffer.status().ToString().find("1125899906842624 bytes requested"), std::string::npos)
      << buffer.status();
  EXPECT_TRUE(DeviceBuffer::Create(256).ok());
}

TEST_F(Device, ScratchMemoryGoesAfterWhatIsQueued) {
  constexpr size_t kBytes = 4 << 20;
  const std::vector<uint8_t> ones(kBytes, 1);
  const auto memory = DeviceBuffer::Create(kBytes);
  ASSERT_TRUE(memory.ok());
  for (int i = 0; i < 3; ++i) {
    const auto scratch = ScratchBuffer::Create(kBytes, stream());
    ASSERT_TRUE(scratch.ok()) << scratch.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch->As<uint8_t>()) % 256, 0u);
    ASSERT_TRUE(CopyToDeviceAsync(scratch->As<uint8_t>(), ones.data(), kBytes, stream()).ok());
    ASSERT_TRUE(CopyOnDeviceAsync(memory->data(), scratch->As<uint8_t>(), kBytes, stream()).ok());
  }
  std::vector<uint8_t> back(kBytes);
  ASSERT_TRUE(CopyToHostAsync(back.data(), memory->data(), kBytes, stream()).ok());
  ASSERT_TRUE(stream().Synchronize().ok());
  EXPECT_EQ(back, ones);
  const auto too_much = ScratchBuffer::Create(size_t{1} << 50, stream());
  EXPECT_TRUE(absl::IsResourceExhausted(too_much.status())) << too_much.status();
}

TEST_F(Device, HasFacts) {
  const auto facts = GetDeviceFacts();
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_FALSE(facts->name.empty());
  EXPECT_GE(facts->compute_major, 8);
  EXPECT_GT(facts->multiprocessors, 0);
  EXPECT_GE(facts->memory_bytes, facts->free_bytes);
  const auto shared_bytes = SharedBytesPerBlock();
  ASSERT_TRUE(shared_bytes.ok()) << shared_bytes.status();
  EXPECT_EQ(*shared_bytes, facts->shared_bytes_per_block);
  EXPECT_FALSE(UseDevice(1000).ok());
  EXPECT_TRUE(UseDevice(0).ok());
}

TEST_F(Device, AreListed) {
  const std::vector<int> devices = ListDevices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices.front(), 0);
  for (const int device : devices) EXPECT_TRUE(UseDevice(device).ok()) << device;
  EXPECT_TRUE(UseDevice(0).ok());
}

#if TUG_CUDA_EMULATED
// With several devices, another device's memory is not device memory here. Pinned memory belongs to
// all.
TEST_F(Device, AThreadHasTheMemoryOfItsDevice) {
  emulation::SetDeviceCount(2);
  EXPECT_EQ(ListDevices(), (std::vector<int>{0, 1}));
  const auto here = DeviceBuffer::Create(64);
  const auto pinned = PinnedBuffer::Create(64);
  ASSERT_TRUE(here.ok() && pinned.ok());
  std::thread([&] {
    ASSERT_TRUE(UseDevice(1).ok());
    const auto other = Stream::Create();
    const auto there = DeviceBuffer::Create(64);
    ASSERT_TRUE(other.ok() && there.ok());
    EXPECT_TRUE(CopyToDeviceAsync(there->data(), pinned->data(), 64, *other).ok());
    EXPECT_TRUE(absl::IsInternal(CopyToDeviceAsync(here->data(), pinned->data(), 64, *other)));
    EXPECT_TRUE(absl::IsInternal(FillZeroAsync(here->data(), 64, *other)));
  }).join();
  EXPECT_TRUE(FillZeroAsync(here->data(), 64, stream()).ok());
  emulation::SetDeviceCount(1);
  EXPECT_TRUE(absl::IsUnavailable(UseDevice(1)));
}
#endif

TEST_F(Device, CopiesFromAndToRegisteredMemory) {
  constexpr size_t kBytes = size_t{4} << 20;
  const Pages from = NewPages(kBytes), to = NewPages(kBytes);
  ASSERT_TRUE(from != nullptr && to != nullptr);
  std::memset(from.get(), 3, kBytes);
  const auto out = RegisteredMemory::Create(from.get(), kBytes);
  const auto in = RegisteredMemory::Create(to.get(), kBytes);
  ASSERT_TRUE(out.ok() && in.ok()) << out.status() << in.status();
  const auto device = DeviceBuffer::Create(kBytes);
  ASSERT_TRUE(device.ok()) << device.status();
  ASSERT_TRUE(CopyToDeviceAsync(device->data(), from.get(), kBytes, stream()).ok());
  ASSERT_TRUE(CopyToHostAsync(to.get(), device->data(), kBytes, stream()).ok());
  ASSERT_TRUE(stream().Synchronize().ok());
  EXPECT_EQ(std::memcmp(to.get(), from.get(), kBytes), 0);
  EXPECT_FALSE(RegisteredMemory::Create(nullptr, 0).ok());
}

}  // namespace
}  // namespace tug::kernels::cuda
