// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_CUDA_TEST_SUPPORT_H_
#define TUG_KERNELS_CUDA_DEVICE_CUDA_TEST_SUPPORT_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <vector>

#include "base/check.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device/device.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/cuda_emulation_late.h"
#include "kernels/emulation/cuda_emulation_scheduler.h"
#endif

namespace tug::kernels::cuda {

// Whether the environment states that a GPU exists (TUG_REQUIRE_GPU=1, which deploy/test_gpu sets
// if it finds one). A test that cannot use it then fails instead of being skipped.
inline bool IsGpuRequired() {
  const char* const required = std::getenv("TUG_REQUIRE_GPU");
  return required != nullptr && std::strcmp(required, "1") == 0;
}

// Seeds the order of an emulated GPU's threads and late streams, and prints the seed.
// --test_arg=--gtest_random_seed=N repeats the order of seed N.
inline void SetEmulationSeed() {
#if TUG_CUDA_EMULATED
  const int given = testing::GTEST_FLAG(random_seed);
  const uint64_t seed =
      given != 0 ? static_cast<uint64_t>(given) : std::random_device()() % 99999 + 1;
  std::cout << "emulated with seed " << seed << std::endl;
  emulation::SetSeed(seed);
  emulation::SeedStreams(seed);
#endif
}

// Base of kernel tests, which run twice (tug_cuda_test of third_party/cuda.bzl): emulated, and on
// the GPU, where they are skipped if there is none (except with IsGpuRequired).
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status gpu = CheckGpu();
    if (absl::IsUnavailable(gpu) && !IsGpuRequired()) {
      GTEST_SKIP() << "skipped: " << gpu.message();
    }
    ASSERT_TRUE(gpu.ok()) << gpu;
    SetEmulationSeed();
    auto stream = Stream::Create();
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_.emplace(*std::move(stream));
  }
  // Reports errors that no test waited for.
  void TearDown() override {
#if TUG_CUDA_EMULATED
    const absl::Status finished = emulation::FinishStreams();
    EXPECT_TRUE(finished.ok()) << finished;
#endif
  }
  const Stream& stream() const { return *stream_; }

 private:
  std::optional<Stream> stream_;
};

// CudaTest for tests of order between streams: an emulated GPU executes everything as late as
// possible, or in a random order with TUG_EMULATED_STREAMS=late.
class LateCudaTest : public CudaTest {
#if TUG_CUDA_EMULATED
 protected:
  void SetUp() override {
    if (!emulation::StreamsAreLate()) latest_.emplace(/*seed=*/0);
    CudaTest::SetUp();
    if (latest_.has_value()) emulation::SeedStreams(0);
  }
  void TearDown() override {
    CudaTest::TearDown();
    latest_.reset();
  }

 private:
  std::optional<emulation::LateStreams> latest_;
#endif
};

// A copy of `values` in device memory. Kernels use data(); Read() waits for the stream.
template <typename T>
class OnDevice {
 public:
  OnDevice(const std::vector<T>& values, const Stream& stream)
      : n_(values.size()), stream_(stream), buffer_(Allocate(n_ * sizeof(T))) {
    EXPECT_TRUE(CopyToDeviceAsync(data(), values.data(), n_ * sizeof(T), stream_).ok());
    EXPECT_TRUE(stream_.Synchronize().ok());
  }
  T* data() const { return buffer_.As<T>(); }
  std::vector<T> Read() const {
    std::vector<T> values(n_);
    const absl::Status copied = CopyToHostAsync(values.data(), data(), n_ * sizeof(T), stream_);
    EXPECT_TRUE(copied.ok()) << copied;
    const absl::Status done = stream_.Synchronize();
    EXPECT_TRUE(done.ok()) << done;
    return values;
  }

 private:
  static DeviceBuffer Allocate(size_t bytes) {
    auto buffer = DeviceBuffer::Create(bytes);
    TUG_CHECK_OK(buffer);
    return *std::move(buffer);
  }

  const size_t n_;
  const Stream& stream_;
  const DeviceBuffer buffer_;
};

// Like OnCpu of kernel_test_support.h.
class OnGpu : public CudaTest {
 protected:
  static constexpr int kRuns = 2;

  template <typename T>
  OnDevice<T> Put(const std::vector<T>& values) {
    return OnDevice<T>(values, stream());
  }
  void BeginRun(int /*run*/) {}
  static void Expect(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }
  template <typename Args>
  void Run(absl::Status (*kernel)(const Args&, const Stream&), const Args& args) {
    Expect(kernel(args, stream()));
  }
};

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_CUDA_TEST_SUPPORT_H_
