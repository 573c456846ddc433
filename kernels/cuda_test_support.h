#ifndef TUG_KERNELS_CUDA_TEST_SUPPORT_H_
#define TUG_KERNELS_CUDA_TEST_SUPPORT_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <vector>

#include "base/check.h"
#include "gtest/gtest.h"
#include "kernels/device.h"

#if TUG_CUDA_EMULATED
#include "kernels/cuda_emulation_scheduler.h"
#endif

namespace tug::kernels::cuda {

// Whether the environment says that there is a GPU (TUG_REQUIRE_GPU=1, which deploy/test_gpu sets
// where it sees one): a test that cannot use it then fails, where it would be skipped.
inline bool IsGpuRequired() {
  const char* const required = std::getenv("TUG_REQUIRE_GPU");
  return required != nullptr && std::strcmp(required, "1") == 0;
}

// For the tests of kernels, which run twice (tug_cuda_test of third_party/cuda.bzl): on the GPU, or
// skipped where there is none (but see IsGpuRequired), and emulated. Then the threads' order is
// drawn from a seed, which it prints; --test_arg=--gtest_random_seed=N gives that of seed N again.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status gpu = CheckGpu();
    if (absl::IsUnavailable(gpu) && !IsGpuRequired()) {
      GTEST_SKIP() << "skipped: " << gpu.message();
    }
    ASSERT_TRUE(gpu.ok()) << gpu;
    auto stream = Stream::Create();
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_.emplace(*std::move(stream));
#if TUG_CUDA_EMULATED
    const int given = testing::GTEST_FLAG(random_seed);
    const uint64_t seed =
        given != 0 ? static_cast<uint64_t>(given) : std::random_device()() % 99999 + 1;
    std::cout << "emulated with seed " << seed << std::endl;
    emulation::SetSeed(seed);
#endif
  }
  const Stream& stream() const { return *stream_; }

 private:
  std::optional<Stream> stream_;
};

// A copy of `values` in device memory. Kernels get data(); Read() waits for the stream.
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

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_TEST_SUPPORT_H_
