// SPDX-License-Identifier: Apache-2.0
// Two ranks share one GPU, each in its own process with its own NCCL_HOSTID. Without a GPU, or
// without --config=cuda, the tests check that the error says so.
#include "collective/nccl_group.h"

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"

#if TUG_CUDA
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/cuda/device/device.h"
#endif

namespace tug {
namespace {

bool SaysNoGpu(const absl::Status& status) {
  return absl::IsUnavailable(status) && absl::StrContains(std::string(status.message()), "no GPU");
}

#if !TUG_CUDA

TEST(NcclGroup, WithoutCudaSaysThatThereIsNoGpu) {
  EXPECT_TRUE(SaysNoGpu(NcclGroup::MakeId().status()));
  EXPECT_TRUE(SaysNoGpu(NcclGroup::Create({}, {}).status()));
}

TEST(NcclGroup, SumsOnTheGpu) { GTEST_SKIP() << "skipped: no GPU (built without --config=cuda)"; }

#else

// CUDA does not survive a fork, so this process never uses it.
template <typename Body>
pid_t InAProcess(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

int ExitOf(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool HasGpu() {
  static const bool has =
      ExitOf(InAProcess([] { return kernels::cuda::CheckGpu().ok() ? 0 : 1; })) == 0;
  return has;
}

TEST(NcclGroup, AMissingGpuIsAnErrorThatSaysSo) {
  if (HasGpu()) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(kernels::cuda::IsGpuRequired()) << "the GPU cannot be used";
  EXPECT_EQ(ExitOf(InAProcess([] {
              return SaysNoGpu(NcclGroup::MakeId().status()) &&
                             SaysNoGpu(NcclGroup::Create({}, {}).status())
                         ? 0
                         : 1;
            })),
            0);
}

// Two ranks of a group, joined through a pipe: rank 0 makes the id and writes it for rank 1.
class Pair {
 public:
  Pair() { EXPECT_EQ(pipe(pipe_), 0); }
  ~Pair() {
    close(pipe_[0]);
    close(pipe_[1]);
  }
  absl::StatusOr<std::unique_ptr<NcclGroup>> Join(uint32_t rank, absl::Duration timeout) {
    setenv("NCCL_HOSTID", absl::StrCat("rank", rank).c_str(), 1);
    NcclGroup::Id id;
    if (rank == 0) {
      ASSIGN_OR_RETURN(id, NcclGroup::MakeId());
      if (write(pipe_[1], id.data(), id.size()) < 0) return absl::InternalError("pipe");
    } else if (read(pipe_[0], id.data(), id.size()) != static_cast<ssize_t>(id.size())) {
      return absl::InternalError("pipe");
    }
    return NcclGroup::Create({.rank = rank, .world = 2, .timeout = timeout}, id);
  }

 private:
  int pipe_[2] = {-1, -1};
};

constexpr uint64_t kCount = 1 << 20;

// Returns 0 if the sum of rank + 1 over both ranks is 3 everywhere.
int SumOnce(Pair& pair, uint32_t rank) {
  const auto group = pair.Join(rank, absl::Seconds(60));
  if (!group.ok()) return 2;
  const std::vector<float> mine(kCount, static_cast<float>(rank + 1));
  std::vector<float> sum(kCount);
  void* memory = nullptr;
  if (cudaMalloc(&memory, kCount * sizeof(float)) != cudaSuccess) return 3;
  cudaMemcpy(memory, mine.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
  if (!(*group)->AllReduce(memory, memory, kCount, ElementType::kFp32, nullptr).ok()) return 4;
  if (!(*group)->Wait(nullptr).ok()) return 5;
  cudaMemcpy(sum.data(), memory, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  for (const float value : sum) {
    if (value != 3.0f) return 6;
  }
  return 0;
}

TEST(NcclGroup, SumsOnTheGpu) {
  if (!HasGpu()) GTEST_SKIP() << "skipped: no GPU";
  Pair pair;
  const pid_t one = InAProcess([&] { return SumOnce(pair, 0); });
  const pid_t two = InAProcess([&] { return SumOnce(pair, 1); });
  EXPECT_EQ(ExitOf(one), 0);
  EXPECT_EQ(ExitOf(two), 0);
}

TEST(NcclGroup, ALostRankIsAnErrorWithinTheTimeout) {
  if (!HasGpu()) GTEST_SKIP() << "skipped: no GPU";
  Pair pair;
  const pid_t lost = InAProcess([&] {
    const auto group = pair.Join(1, absl::Seconds(60));
    raise(SIGKILL);
    return 0;
  });
  const pid_t left = InAProcess([&] {
    const auto group = pair.Join(0, absl::Seconds(10));
    if (!group.ok()) return 2;
    void* memory = nullptr;
    if (cudaMalloc(&memory, kCount * sizeof(float)) != cudaSuccess) return 3;
    absl::Status status = (*group)->AllReduce(memory, memory, kCount, ElementType::kFp32, nullptr);
    if (status.ok()) status = (*group)->Wait(nullptr);
    return status.ok() ? 4 : 0;
  });
  EXPECT_EQ(ExitOf(lost), 128 + SIGKILL);
  EXPECT_EQ(ExitOf(left), 0);
}

// Aborts a group from another thread during its calls.
int AbortOnce() {
  const auto id = NcclGroup::MakeId();
  if (!id.ok()) return 2;
  const auto group = NcclGroup::Create({}, *id);
  if (!group.ok()) return 3;
  void* memory = nullptr;
  if (cudaMalloc(&memory, kCount * sizeof(float)) != cudaSuccess) return 4;
  const auto sum = [&] {
    return (*group)->AllReduce(memory, memory, kCount, ElementType::kFp32, nullptr);
  };
  if (!sum().ok() || !(*group)->Wait(nullptr).ok()) return 5;
  std::thread beside([&] { (*group)->Abort(); });
  absl::Status status;
  while (status.ok()) status = sum();
  beside.join();
  if (!absl::IsCancelled(status) || !absl::IsCancelled((*group)->Wait(nullptr))) return 6;
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 7;
}

TEST(NcclGroup, AnAbortedGroupIsOver) {
  if (!HasGpu()) GTEST_SKIP() << "skipped: no GPU";
  EXPECT_EQ(ExitOf(InAProcess([] { return AbortOnce(); })), 0);
}

// Aborts the Join of a group whose other rank never comes.
int AbortTheJoin() {
  const auto id = NcclGroup::MakeId();
  if (!id.ok()) return 2;
  NcclGroup group({.world = 2, .timeout = absl::InfiniteDuration()});
  absl::Status joined;
  std::thread beside([&] { joined = group.Join(*id); });
  group.Abort();
  beside.join();
  return absl::IsCancelled(joined) ? 0 : 3;
}

TEST(NcclGroup, AnAbortEndsTheWaitForOthersToJoin) {
  if (!HasGpu()) GTEST_SKIP() << "skipped: no GPU";
  EXPECT_EQ(ExitOf(InAProcess([] { return AbortTheJoin(); })), 0);
}

#endif  // TUG_CUDA

}  // namespace
}  // namespace tug
