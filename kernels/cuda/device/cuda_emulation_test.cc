// SPDX-License-Identifier: Apache-2.0
// Results of emulated kernels, and the faults of kernels that the emulation finds. The seeds are
// fixed: each test has the same result in every run.
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device/bf16_cuda.h"
#include "kernels/cuda/device/block_reduce.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/tensor_core.h"
#include "kernels/reference/bf16_ref.h"

namespace tug::kernels::cuda {
namespace {

// Memory that both host and device use.
template <typename T>
class Shared {
 public:
  explicit Shared(std::vector<T> values)
      : n_(values.size()), buffer_(*PinnedBuffer::Create(n_ * sizeof(T))) {
    std::copy(values.begin(), values.end(), buffer_.As<T>());
  }
  T* data() const { return buffer_.As<T>(); }
  std::vector<T> Read() const { return {data(), data() + n_}; }

 private:
  size_t n_;
  PinnedBuffer buffer_;
};

std::vector<int> UpTo(int n) {
  std::vector<int> values(n);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

class CudaEmulation : public testing::Test {
 protected:
  const Stream stream_ = *Stream::Create();
};

bool Says(const absl::Status& status, const std::string& what) {
  return absl::IsInternal(status) && absl::StrContains(std::string(status.message()), what);
}

__global__ void AddOne(int64_t n, int* x) {
  for (int64_t i = GlobalThread(); i < n; i += GridThreads()) x[i] += 1;
}

TEST_F(CudaEmulation, AGridStrideLoopTouchesEachElementOnce) {
  for (const int n : {1, 31, 33, 1023, 5000}) {
    for (const unsigned blocks : {1u, 3u}) {
      const Shared<int> x(UpTo(n));
      ASSERT_TRUE(Launch(AddOne, {blocks, 64, stream_}, n, x.data()).ok());
      auto expected = UpTo(n);
      for (int& value : expected) ++value;
      EXPECT_EQ(x.Read(), expected);
    }
  }
}

__global__ void WriteIndices(uint4* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      make_uint4(blockIdx.y, blockIdx.z, threadIdx.y, threadIdx.z);
}

TEST_F(CudaEmulation, HasThreeDimensions) {
  const Shared<uint4> out(std::vector<uint4>(24 * 24));
  ASSERT_TRUE(Launch(WriteIndices, {dim3(4, 3, 2), dim3(2, 3, 4), stream_}, out.data()).ok());
  for (unsigned block = 0; block < 24; ++block) {
    for (unsigned thread = 0; thread < 24; ++thread) {
      const uint4 at = out.data()[block * 24 + thread];
      EXPECT_EQ(at.x, block / 4 % 3);
      EXPECT_EQ(at.y, block / 12);
      EXPECT_EQ(at.z, thread / 2 % 3);
      EXPECT_EQ(at.w, thread / 6);
    }
  }
}

__global__ void SumOfEachBlock(const float* x, float* sums) {
  float* const scratch = SharedMemory<float>();
  const float sum = BlockSum(x[GlobalThread()], scratch);
  const float most = BlockMax(x[GlobalThread()], scratch);
  if (threadIdx.x == 1) sums[blockIdx.x] = sum + 1000 * most;
}

TEST_F(CudaEmulation, ReducesByShuffles) {
  for (const unsigned threads : {32u, 256u, 1024u}) {
    const auto ints = UpTo(3 * static_cast<int>(threads));
    const Shared<float> x(std::vector<float>(ints.begin(), ints.end()));
    const Shared<float> sums(std::vector<float>(3));
    for (uint64_t seed = 1; seed < 10; ++seed) {
      emulation::SetSeed(seed);
      const auto status = Launch(SumOfEachBlock, {3, threads, stream_, kWarp * sizeof(float)},
                                 x.data(), sums.data());
      ASSERT_TRUE(status.ok()) << status;
      for (unsigned block = 0; block < 3; ++block) {
        const float first = static_cast<float>(block * threads);
        const float last = first + static_cast<float>(threads - 1);
        EXPECT_EQ(sums.data()[block],
                  (first + last) / 2 * static_cast<float>(threads) + 1000 * last);
      }
    }
  }
}

struct Tree {
  float partial[256];
};

template <bool kWithBarrier>
__global__ void SumByTree(const float* x, float* sum) {
  Tree* const shared = SharedMemory<Tree>();
  shared->partial[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (unsigned apart = 128; apart > 0; apart /= 2) {
    if (threadIdx.x < apart) shared->partial[threadIdx.x] += shared->partial[threadIdx.x + apart];
    if (kWithBarrier) __syncthreads();
  }
  if (threadIdx.x == 0) *sum = shared->partial[0];
}

TEST_F(CudaEmulation, ReducesBySharedMemoryAndFindsAMissingBarrier) {
  const Shared<float> x(std::vector<float>(256, 1.0f));
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    emulation::SetSeed(seed);
    const Shared<float> sum({0.0f});
    ASSERT_TRUE(
        Launch(SumByTree<true>, {1, 256, stream_, sizeof(Tree)}, x.data(), sum.data()).ok());
    EXPECT_EQ(sum.data()[0], 256);
    ASSERT_TRUE(
        Launch(SumByTree<false>, {1, 256, stream_, sizeof(Tree)}, x.data(), sum.data()).ok());
    found += sum.data()[0] != 256 ? 1 : 0;
  }
  EXPECT_EQ(found, 20);
}

__global__ void Shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = __shfl_sync(kAllLanes, lane, 5);
  out[32 + lane] = __shfl_sync(kAllLanes, lane, 35, 8);
  out[64 + lane] = __shfl_up_sync(kAllLanes, lane, 3);
  out[96 + lane] = __shfl_down_sync(kAllLanes, lane, 3, 16);
  out[128 + lane] = __shfl_xor_sync(kAllLanes, lane, 9);
  out[160 + lane] = static_cast<int>(__ballot_sync(kAllLanes, lane % 3 == 0));
  out[192 + lane] = __reduce_add_sync(kAllLanes, lane);
  out[224 + lane] = __any_sync(kAllLanes, lane == 31) + 2 * __all_sync(kAllLanes, lane < 31);
  // Separately in each half of the warp.
  const unsigned half = lane < 16 ? 0xFFFFu : 0xFFFF0000u;
  out[256 + lane] = lane < 16 ? __reduce_max_sync(half, lane) : __reduce_min_sync(half, lane);
}

TEST_F(CudaEmulation, WarpOperationsMeanWhatCudaSays) {
  const Shared<int> out(std::vector<int>(9 * 32));
  const auto status = Launch(Shuffles, {1, 32, stream_}, out.data());
  ASSERT_TRUE(status.ok()) << status;
  const auto got = out.Read();
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], 5);
    EXPECT_EQ(got[32 + lane], lane / 8 * 8 + 3);
    EXPECT_EQ(got[64 + lane], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(got[96 + lane], lane % 16 + 3 < 16 ? lane + 3 : lane);
    EXPECT_EQ(got[128 + lane], lane ^ 9);
    EXPECT_EQ(got[160 + lane], 0x49249249);
    EXPECT_EQ(got[192 + lane], 31 * 16);
    EXPECT_EQ(got[224 + lane], 1);
    EXPECT_EQ(got[256 + lane], lane < 16 ? 15 : 16);
  }
}

__global__ void BarrierForHalf(int*) {
  if (threadIdx.x < 16) __syncthreads();
}
__global__ void BarriersApart(int*) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void ShuffleForHalf(int* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_xor_sync(kAllLanes, 1, 1);
}
__global__ void ShuffleFromOutside(int* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_sync(0xFFFFu, 1, 20);
}
__global__ void ShuffleWithoutItself(int* x) { x[threadIdx.x] = __shfl_sync(0xFFFFu, 1, 0); }
__global__ void WarpMeetsBarrier(int* x) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    x[threadIdx.x] = __shfl_sync(kAllLanes, 1, 0);
    __syncwarp(kAllLanes);
    __syncthreads();
  }
}

TEST_F(CudaEmulation, WaitingForThreadsThatDoNotComeIsAnErrorThatSaysWhere) {
  const Shared<int> x(std::vector<int>(64));
  auto status = Launch(BarrierForHalf, {2, 32, stream_}, x.data());
  EXPECT_TRUE(Says(status, "16 of them, the first (0, 0, 0): in __syncthreads at ")) << status;
  EXPECT_TRUE(Says(status, "16 of them, the first (16, 0, 0): returned")) << status;
  EXPECT_TRUE(Says(status, "cuda_emulation_test.cc:")) << status;
  EXPECT_TRUE(
      Says(Launch(BarriersApart, {1, 32, stream_}, x.data()), "other threads wait in that"));
  EXPECT_TRUE(Says(Launch(ShuffleForHalf, {1, 32, stream_}, x.data()), "in __shfl_sync at "));
  EXPECT_TRUE(Says(Launch(ShuffleForHalf, {1, 16, stream_}, x.data()), "in __shfl_sync at "));
  EXPECT_TRUE(Says(Launch(ShuffleFromOutside, {1, 32, stream_}, x.data()), "reads lane 20, which"));
  EXPECT_TRUE(Says(Launch(ShuffleWithoutItself, {1, 32, stream_}, x.data()), "lacks the calling"));
  status = Launch(WarpMeetsBarrier, {1, 64, stream_}, x.data());
  EXPECT_FALSE(status.ok());
  // A fault does not affect the next grid.
  ASSERT_TRUE(Launch(AddOne, {2, 32, stream_}, 64, x.data()).ok());
}

struct Vectors {
  alignas(16) float x[8];
};
template <bool kWithWait>
__global__ void CopyWithoutWaiting(const float* in, float* out) {
  Vectors* const shared = SharedMemory<Vectors>();
  CopyAsync16(shared->x, in);
  CommitCopies();
  if (kWithWait) WaitForCopies<0>();
  *out = shared->x[0];
}
__global__ void CopyToAnOddPlace(const float* in, float*) {
  CopyAsync16(SharedMemory<Vectors>()->x + 1, in);
}

TEST_F(CudaEmulation, ACopyIsNotThereBeforeItIsWaitedFor) {
  const Shared<float> in(std::vector<float>(4, 7.0f)), out({0.0f});
  const LaunchShape shape = {1, 1, stream_, sizeof(Vectors)};
  ASSERT_TRUE(Launch(CopyWithoutWaiting<true>, shape, in.data(), out.data()).ok());
  EXPECT_EQ(out.data()[0], 7);
  ASSERT_TRUE(Launch(CopyWithoutWaiting<false>, shape, in.data(), out.data()).ok());
  EXPECT_TRUE(std::isnan(out.data()[0]));
  EXPECT_TRUE(Says(Launch(CopyToAnOddPlace, shape, in.data(), out.data()), "16-byte boundary"));
}

struct TwoFloats {
  float x[2];
};
__global__ void ReadUnwritten(float* out) { *out = SharedMemory<TwoFloats>()->x[0]; }
__global__ void WriteBehind() { SharedMemory<float>()[8] = 0; }

TEST_F(CudaEmulation, WatchesSharedMemory) {
  const Shared<float> out({0.0f});
  ASSERT_TRUE(Launch(ReadUnwritten, {1, 1, stream_, 8}, out.data()).ok());
  EXPECT_TRUE(std::isnan(out.data()[0]));
  EXPECT_TRUE(Says(Launch(ReadUnwritten, {1, 1, stream_, 4}, out.data()), "launched with 4"));
  EXPECT_TRUE(Says(Launch(WriteBehind, {1, 1, stream_, 32}), "beyond the 32 bytes"));
}

struct AddOneArgs {
  struct {
    int64_t n;
  } shape;
  int* x;
};
__global__ void AddOneOf(AddOneArgs args) { args.x[0] += static_cast<int>(args.shape.n); }

TEST_F(CudaEmulation, RefusesWhatNoGpuTakes) {
  const Shared<int> x({0});
  for (const unsigned threads : {0u, 1025u}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Launch(AddOne, {1, threads, stream_}, 1, x.data())));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Launch(AddOne, {0, 1, stream_}, 1, x.data())));
  EXPECT_TRUE(absl::IsInvalidArgument(Launch(AddOne, {1, 1, stream_, 200 << 10}, 1, x.data())));
  int host = 0;
  EXPECT_TRUE(Says(Launch(AddOne, {1, 1, stream_}, 1, &host), "not device memory"));
  EXPECT_TRUE(Launch(AddOneOf, {1, 1, stream_}, AddOneArgs{{1}, x.data()}).ok());
  EXPECT_TRUE(Says(Launch(AddOneOf, {1, 1, stream_}, AddOneArgs{{1}, &host}), "not device memory"));
}

__global__ void Count(unsigned* counter, int* most) {
  atomicAdd(counter, 1u);
  atomicMax(most, static_cast<int>(GlobalThread()));
}

TEST_F(CudaEmulation, CountsWithAtomics) {
  const Shared<unsigned> counter({0u});
  const Shared<int> most({-1});
  ASSERT_TRUE(Launch(Count, {7, 33, stream_}, counter.data(), most.data()).ok());
  EXPECT_EQ(counter.data()[0], 7u * 33);
  EXPECT_EQ(most.data()[0], 7 * 33 - 1);
}

__global__ void Bits(int* out) {
  out[0] = __popc(0xF0F0u);
  out[1] = __ffs(0);
  out[2] = __ffs(8);
  out[3] = __clz(1);
  out[4] = static_cast<int>(__umulhi(0x80000000u, 6u));
  out[5] = __float2int_rn(2.5f);
}

TEST_F(CudaEmulation, BitOperationsMeanWhatCudaSays) {
  const Shared<int> out(std::vector<int>(6));
  ASSERT_TRUE(Launch(Bits, {1, 1, stream_}, out.data()).ok());
  EXPECT_EQ(out.Read(), (std::vector<int>{8, 0, 4, 31, 3, 2}));
}

TEST_F(CudaEmulation, RunsOnSeveralOsThreadsAtATime) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(3, 0);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this, &wrong, i] {
      const Shared<float> x(std::vector<float>(256, 1.0f)), sum({0.0f});
      for (int repeat = 0; repeat < 20; ++repeat) {
        const auto status =
            Launch(SumByTree<true>, {1, 256, stream_, sizeof(Tree)}, x.data(), sum.data());
        wrong[i] += !status.ok() || sum.data()[0] != 256 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(3, 0));
}

TEST(Narrow, RoundsAsTheReferenceOnEveryUpperHalf) {
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float x = __uint_as_float(upper << 16 | lower);
      ASSERT_EQ(Narrow<Bf16>(x), Bf16FromFloatRef(x)) << upper << " " << lower;
    }
    const auto bf16 = static_cast<Bf16>(upper);
    ASSERT_EQ(__float_as_uint(Widen(bf16)), upper << 16);
  }
}

TEST(DeviceMemoryDeathTest, AWriteBehindItsEndEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto buffer = DeviceBuffer::Create(10);
        buffer->As<char>()[10] = 0;
      },
      "written beyond the end of 10 bytes");
}

#if defined(__SANITIZE_ADDRESS__)
TEST(DeviceMemoryDeathTest, TheHostMayNotUseIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto buffer = DeviceBuffer::Create(100);
  ASSERT_TRUE(buffer.ok());
  EXPECT_DEATH(buffer->As<char>()[10] = 0, "use-after-poison");
  const auto pinned = PinnedBuffer::Create(100);
  ASSERT_TRUE(pinned.ok());
  pinned->As<char>()[10] = 0;
}
#endif

}  // namespace
}  // namespace tug::kernels::cuda
