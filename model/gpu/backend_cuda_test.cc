// SPDX-License-Identifier: Apache-2.0
// Tests the GPU backend itself: memory, inputs, results, errors, and that each operation forwards
// its arguments as the CPU's takes them. The accuracy of operations is tested in kernels/.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/cpu/thread_pool.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/kernel_test_support.h"
#include "model/backend.h"
#include "model/backend/backend_operations.h"
#include "model/backend/cpu_backend.h"
#include "model/backend/cuda_device.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/cuda_emulation_late.h"
#endif

namespace tug {
namespace {

using kernels::Bf16;
using kernels::RandomFloats;
using kernels::cuda::CudaTest;

template <typename T>
absl::StatusOr<std::unique_ptr<Backend<T>>> NewBackend(ComputeDevice& device) {
  if constexpr (std::is_same_v<T, float>) {
    return device.NewFp32Backend();
  } else {
    return device.NewBf16Backend();
  }
}

template <typename T>
class BackendCuda : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    auto device = NewCudaDevice(0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    auto backend = NewBackend<T>(*device_);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<Backend<T>> backend_;
};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(BackendCuda, Types);

// FP32 sums of up to 40 terms in another order.
constexpr double kSumBound = 1e-5;
// After one rounding to Bf16, two sums this close are equal or neighbours: 2^-7 relative.
constexpr double kRoundedSumBound = 0x1p-7;
// Values rounded more often: linear layers also round the bias (up to 1) on the GPU, by 2^-9; a
// gradient that is added to, and GELU's input, are such neighbours themselves, as are factors of
// attention, which the CPU rounds and the kernels for this shape do not.
constexpr double kRoundedOftenBound = 1.5e-2;

bool IsRoundedOften(const std::string& name) {
  static const std::set<std::string> kWithBias = {"linear", "GELU pre", "GELU", "ReLU pre", "ReLU"};
  return kWithBias.contains(name) || name == "GELU backward" || name.ends_with(" dx +") ||
         name.find("attention") != name.npos;
}

TYPED_TEST(BackendCuda, EveryOperationIsTheCpus) {
  ThreadPool pool(1);
  CpuDevice cpu(pool);
  const auto reference = NewBackend<TypeParam>(cpu);
  ASSERT_TRUE(reference.ok());
  const auto expected =
      Operations<TypeParam>(**reference, [](void* to, const void* from, size_t bytes) {
        std::memcpy(to, from, bytes);
      }).Run();
  const auto results =
      Operations<TypeParam>(*this->backend_, [&](void* to, const void* from, size_t bytes) {
        const auto& stream = this->device_->compute_stream();
        EXPECT_TRUE(kernels::cuda::CopyToDeviceAsync(to, from, bytes, stream).ok());
        EXPECT_TRUE(stream.Synchronize().ok());
      }).Run();
  EXPECT_GE(expected.size(), 50u);
  ASSERT_EQ(results.size(), expected.size());
  constexpr bool kIsBf16 = std::is_same_v<TypeParam, Bf16>;
  for (const auto& [name, values] : expected) {
    SCOPED_TRACE(name);
    const bool often = kIsBf16 && IsRoundedOften(name);
    kernels::ExpectClose(results.at(name), kernels::ToDouble(values),
                         often ? kRoundedOftenBound : kSumBound,
                         often     ? kRoundedOftenBound
                         : kIsBf16 ? kRoundedSumBound
                                   : kSumBound);
  }
  // ReLU's derivative jumps at 0: no input may be so close that the order of sums decides.
  for (const auto* of : {&expected, &results}) {
    for (const float pre : of->at("ReLU pre")) EXPECT_GT(std::abs(pre), 10 * kSumBound);
  }
}

// Whole batches are queued one after another; the third exceeds the memory allocated so far.
TYPED_TEST(BackendCuda, ArraysOfTheNextBatchDoNotWaitForTheLast) {
  const auto& stream = this->device_->compute_stream();
  std::vector<std::shared_ptr<std::byte>> kept;
  std::vector<size_t> sizes;
  for (int32_t i = 0; i < 6; ++i) {
    std::vector<int32_t> tokens(i < 2 ? 3000 : 5000 - 100 * i, i), targets(tokens.size(), 10 + i);
    sizes.push_back(tokens.size() * sizeof(int32_t));
    auto memory = this->backend_->Allocate(2 * sizes.back(), "copies");
    ASSERT_TRUE(memory.ok()) << memory.status();
    MicroBatch batch;
    batch.samples = 1;
    batch.tokens = tokens;
    batch.targets = targets;
    const auto inputs = this->backend_->LoadInputs(batch);
    EXPECT_EQ(inputs.lengths, nullptr);
    std::byte* const to = memory->get();
    kept.push_back(*std::move(memory));
    using kernels::cuda::CopyOnDeviceAsync;
    ASSERT_TRUE(CopyOnDeviceAsync(to, inputs.tokens, sizes.back(), stream).ok());
    ASSERT_TRUE(CopyOnDeviceAsync(to + sizes.back(), inputs.targets, sizes.back(), stream).ok());
  }
  for (int32_t i = 0; i < 6; ++i) {
    const size_t bytes = sizes[static_cast<size_t>(i)];
    std::vector<int32_t> read(2 * bytes / sizeof(int32_t));
    this->backend_->Fetch(read.data(), kept[static_cast<size_t>(i)].get(), 2 * bytes);
    std::vector<int32_t> expected(read.size(), i);
    std::fill(expected.begin() + static_cast<ptrdiff_t>(read.size() / 2), expected.end(), 10 + i);
    EXPECT_EQ(read, expected);
  }
  EXPECT_TRUE(this->backend_->Synchronize().ok());
}

TYPED_TEST(BackendCuda, FetchesMoreThanItsPinnedMemoryHolds) {
  const std::vector<float> values = RandomFloats((5 << 20) / 4 + 3, 1);
  const kernels::cuda::OnDevice on_device(values, this->stream());
  std::vector<float> back(values.size());
  this->backend_->Fetch(back.data(), on_device.data(), back.size() * sizeof(float));
  EXPECT_EQ(back, values);
  EXPECT_TRUE(this->backend_->status().ok());
}

TYPED_TEST(BackendCuda, AFetchOfNothingWaitsToo) {
#if TUG_CUDA_EMULATED
  const kernels::emulation::LateStreams latest(/*seed=*/0);
#endif
  constexpr size_t kBytes = size_t{64} << 20;  // some 20 us
  const auto& stream = this->device_->compute_stream();
  const auto memory = this->backend_->Allocate(kBytes, "an array");
  const auto event = kernels::cuda::Event::Create();
  ASSERT_TRUE(memory.ok() && event.ok());
  for (int i = 0; i < 4; ++i) this->backend_->FillZero(memory->get(), kBytes);
  ASSERT_TRUE(event->Record(stream).ok());
  this->backend_->Fetch(nullptr, nullptr, 0);
  const auto is_done = event->IsDone();
  EXPECT_TRUE(is_done.ok() && *is_done) << is_done.status();
}

TYPED_TEST(BackendCuda, MemoryThatIsNotThereIsAnErrorThatNamesWhatAndStays) {
  Backend<TypeParam>& backend = *this->backend_;
  const auto memory = backend.Allocate(256, "a little");
  ASSERT_TRUE(memory.ok()) << memory.status();
  backend.FillZero(memory->get(), 256);
  const absl::Status error = backend.Allocate(size_t{1} << 50, "activations").status();
  EXPECT_TRUE(absl::IsResourceExhausted(error)) << error;
  EXPECT_NE(error.ToString().find("activations: "), std::string::npos) << error;
  EXPECT_NE(error.ToString().find("1125899906842624 bytes requested"), std::string::npos) << error;
  EXPECT_EQ(backend.status(), error);
  EXPECT_EQ(backend.Allocate(256, "more").status(), error);
  float untouched = 5;
  backend.Fetch(&untouched, memory->get(), sizeof(untouched));
  EXPECT_EQ(untouched, 5);
  EXPECT_EQ(backend.Synchronize(), error);
}

TYPED_TEST(BackendCuda, TheFirstErrorOfAnOperationStaysAndNothingIsDoneBehindIt) {
  Backend<TypeParam>& backend = *this->backend_;
  const kernels::cuda::OnDevice ones(std::vector<float>(8, 1.0f), this->stream());
  TypeParam* const nothing = nullptr;
  backend.LayerNormForward({.rows = 1, .width = 1 << 20, .x = nothing, .y = nothing});
  const absl::Status error = backend.status();
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
  EXPECT_NE(error.ToString().find("layer norm forward: "), std::string::npos) << error;
  backend.FillZero(ones.data(), 8 * sizeof(float));
  backend.AttentionForward({.shape = {.head_dim = 1000}, .out = nothing});
  EXPECT_EQ(backend.Synchronize(), error);
  EXPECT_EQ(ones.Read(), std::vector<float>(8, 1.0f));
  MicroBatch batch;
  const std::vector<int32_t> tokens = {1};
  batch.samples = 1;
  batch.tokens = tokens;
  EXPECT_NE(backend.LoadInputs(batch).tokens, nullptr);
  EXPECT_EQ(backend.status(), error);
}

TYPED_TEST(BackendCuda, OutlivesItsDeviceAndItsMemory) {
  auto memory = this->backend_->Allocate(1 << 20, "an array");
  ASSERT_TRUE(memory.ok()) << memory.status();
  this->device_ = nullptr;
  this->backend_->FillZero(memory->get(), 1 << 20);
  *memory = nullptr;
  EXPECT_TRUE(this->backend_->Synchronize().ok());
}

TYPED_TEST(BackendCuda, WaitsForItByAnEventOnItsStream) {
  const auto memory = this->backend_->Allocate(1 << 20, "an array");
  const auto event = kernels::cuda::Event::Create();
  ASSERT_TRUE(memory.ok() && event.ok());
  this->backend_->FillZero(memory->get(), 1 << 20);
  ASSERT_TRUE(event->Record(this->device_->compute_stream()).ok());
  ASSERT_TRUE(this->stream().WaitFor(*event).ok());
  auto host = kernels::cuda::PinnedBuffer::Create(1 << 20);
  ASSERT_TRUE(host.ok());
  std::memset(host->data(), 1, host->size_bytes());
  ASSERT_TRUE(kernels::cuda::CopyToHostAsync(host->data(), memory->get(), host->size_bytes(),
                                             this->stream())
                  .ok());
  ASSERT_TRUE(this->stream().Synchronize().ok());
  const uint8_t* const bytes = host->As<uint8_t>();
  EXPECT_EQ(std::count(bytes, bytes + host->size_bytes(), 0), 1 << 20);
}

}  // namespace
}  // namespace tug
