// Compares with the CPU where a GPU can be used; elsewhere checks that its absence is reported, not
// fatal, and says so. Built without --config=cuda it only says that.
#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "kernels/adamw.h"
#include "kernels/adamw_cuda.h"
#include "kernels/adamw_ref.h"
#include "kernels/kernel_test_support.h"

#if TUG_CUDA
#include <cuda_runtime_api.h>
#endif

namespace tug::kernels {
namespace {

#if !TUG_CUDA

TEST(AdamWCuda, IsNotInThisBuild) { GTEST_SKIP() << "built without --config=cuda"; }

#else

TEST(AdamWCuda, ReportsAMissingGpuAsUnavailable) {
  const absl::Status status = CheckGpu();
  if (status.ok()) GTEST_SKIP() << "there is a GPU";
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(std::string(status.message()), "no GPU")) << status;
  std::printf("%s\n", std::string(status.message()).c_str());
  float x = 0;
  const absl::Status step = AdamWStepCuda(1, AdamWParams(), &x, &x, &x, &x, &x, nullptr);
  EXPECT_TRUE(absl::IsUnavailable(step)) << step;
}

// Device memory with a copy of `values`; freed at the end.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values) : n_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, n_ * sizeof(float) + 1), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), n_ * sizeof(float), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~DeviceFloats() { cudaFree(data_); }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  float* data() { return static_cast<float*>(data_); }
  std::vector<float> Read() const {
    std::vector<float> values(n_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, n_ * sizeof(float), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  size_t n_;
  void* data_ = nullptr;
};

TEST(AdamWCuda, HasTheBitsOfTheFloatReferenceAtEverySize) {
  if (const absl::Status status = CheckGpu(); !status.ok()) GTEST_SKIP() << status;
  for (const int64_t n : {0, 1, 31, 32, 33, 1023, 1000003}) {
    SCOPED_TRACE(n);
    auto w = RandomFloats(n, 1);
    std::vector<float> m(n, 0.0f), v(n, 0.0f);
    DeviceFloats w_gpu(w), m_gpu(m), v_gpu(v);
    AdamWParams params{.weight_decay = 0.1f, .freeze_v_after = 3, .gradient_scale = 0.5f};
    for (params.t = 1; params.t <= 5; ++params.t) {
      const auto g = RandomFloats(n, 100 + static_cast<uint32_t>(params.t));
      DeviceFloats g_gpu(g);
      ASSERT_TRUE(AdamWStepCuda(n, params, g_gpu.data(), w_gpu.data(), w_gpu.data(), m_gpu.data(),
                                v_gpu.data(), nullptr)
                      .ok());
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      const AdamWConstants constants = MakeAdamWConstants(params);
      for (int64_t i = 0; i < n; ++i) AdamWRefFloat(params, constants, g[i], w[i], m[i], v[i]);
    }
    ExpectSameBits(w_gpu.Read(), w);
    ExpectSameBits(m_gpu.Read(), m);
    ExpectSameBits(v_gpu.Read(), v);
  }
}

#endif  // TUG_CUDA

}  // namespace
}  // namespace tug::kernels
