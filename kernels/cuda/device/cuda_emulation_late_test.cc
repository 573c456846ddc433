// SPDX-License-Identifier: Apache-2.0
// Faults that late streams find, and correct programs, in which they find none. The seeds are
// fixed: each test has the same result in every run.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/device.h"
#include "kernels/emulation/cuda_emulation_late.h"

namespace tug::kernels::cuda {
namespace {

using emulation::FinishStreams;
using emulation::LateStreams;

constexpr uint64_t kSeeds = 200;  // and seed 0

// Number of those seeds with which the program gives a wrong result.
uint64_t CountWrong(absl::FunctionRef<bool()> is_right) {
  uint64_t wrong = 0;
  for (uint64_t seed = 0; seed <= kSeeds; ++seed) {
    const LateStreams late(seed);
    wrong += is_right() ? 0 : 1;
    EXPECT_TRUE(FinishStreams().ok());
  }
  return wrong;
}

// Expects no wrong result of a correct program, and of an incorrect one more than `least`.
void ExpectFound(uint64_t wrong, bool is_right, uint64_t least) {
  if (is_right) {
    EXPECT_EQ(wrong, 0u);
  } else {
    EXPECT_GT(wrong, least);
  }
}

constexpr uint64_t kMost = kSeeds / 2;

__global__ void Set(int value, int* x) { *x = value; }
__global__ void Add(int addend, const int* from, int* to) { *to = *from + addend; }
__global__ void TimesTenAnd(int digit, int* x) { *x = *x * 10 + digit; }
__global__ void Faulty(int*) {
  if (threadIdx.x < 16) __syncthreads();
}

absl::Status SetTo(int value, int* x, const Stream& stream) {
  return Launch(Set, {1, 1, stream}, value, x);
}

// Two streams with two elements of device memory, initially zero, and two of the host's pinned
// memory.
struct Rig {
  Stream one = *Stream::Create(), other = *Stream::Create();
  Event event = *Event::Create(), second = *Event::Create();
  PinnedBuffer pinned = *PinnedBuffer::Create(2 * sizeof(int));
  DeviceBuffer device = *DeviceBuffer::Create(2 * sizeof(int));  // destroyed first; awaits all work
  int* x = device.As<int>();
  int* y = device.As<int>() + 1;
  int* host = pinned.As<int>();

  Rig() {
    host[0] = host[1] = 0;
    Check(FillZeroAsync(x, 2 * sizeof(int), one));
    Check(one.Synchronize());
  }
  static void Check(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }
  int Read(const int* from, const Stream& stream) const {
    Check(CopyToHostAsync(host, from, sizeof(int), stream));
    Check(stream.Synchronize());
    return host[0];
  }
};

TEST(LateStreams, FindAStreamThatDoesNotWaitForAnothersKernels) {
  for (const bool waits : {true, false}) {
    const uint64_t wrong = CountWrong([&] {
      const Rig rig;
      rig.Check(SetTo(5, rig.x, rig.one));
      rig.Check(rig.event.Record(rig.one));
      if (waits) rig.Check(rig.other.WaitFor(rig.event));
      rig.Check(Launch(Add, {1, 1, rig.other}, 1, rig.x, rig.y));
      return rig.Read(rig.y, rig.other) == 6;
    });
    ExpectFound(wrong, waits, kMost);
  }
}

// A kernel overwrites memory that another stream still reads.
TEST(LateStreams, FindMemoryThatIsWrittenBeforeAnotherStreamHasReadIt) {
  for (const bool waits : {true, false}) {
    const uint64_t wrong = CountWrong([&] {
      const Rig rig;
      rig.Check(SetTo(5, rig.x, rig.one));
      rig.Check(rig.event.Record(rig.one));
      rig.Check(rig.other.WaitFor(rig.event));
      rig.Check(CopyToHostAsync(rig.host, rig.x, sizeof(int), rig.other));
      rig.Check(rig.second.Record(rig.other));
      if (waits) rig.Check(rig.one.WaitFor(rig.second));
      rig.Check(SetTo(7, rig.x, rig.one));
      rig.Check(rig.one.Synchronize());
      rig.Check(rig.second.Synchronize());
      return rig.host[0] == 5;
    });
    ExpectFound(wrong, waits, kSeeds / 4);
  }
}

TEST(LateStreams, FindAHostThatDoesNotWait) {
  for (const bool waits : {true, false}) {
    const auto reads = [&] {
      const Rig rig;
      rig.Check(SetTo(5, rig.x, rig.one));
      rig.Check(CopyToHostAsync(rig.host, rig.x, sizeof(int), rig.one));
      if (waits) rig.Check(rig.one.Synchronize());
      return rig.host[0] == 5;
    };
    const auto writes = [&] {
      const Rig rig;
      rig.host[0] = 5;
      rig.Check(CopyToDeviceAsync(rig.x, rig.host, sizeof(int), rig.one));
      rig.Check(rig.event.Record(rig.one));
      if (waits) rig.Check(rig.event.Synchronize());
      rig.host[0] = 7;
      return rig.Read(rig.x, rig.one) == 5;
    };
    for (const uint64_t wrong : {CountWrong(reads), CountWrong(writes)}) {
      ExpectFound(wrong, waits, kMost);
    }
  }
}

// The call may block, so only some seeds find the fault.
TEST(LateStreams, FindAHostThatDoesNotWaitForAPageableCopy) {
  for (const bool waits : {true, false}) {
    const uint64_t wrong = CountWrong([&] {
      const Rig rig;
      int host = 5;
      rig.Check(CopyToDeviceAsync(rig.x, &host, sizeof(int), rig.one));
      if (waits) rig.Check(rig.one.Synchronize());
      host = 7;
      return rig.Read(rig.x, rig.one) == 5;
    });
    ExpectFound(wrong, waits, kSeeds / 8);
  }
}

// As in CUDA, a wait is for the event's last record before it.
TEST(LateStreams, AWaitIsForTheLastRecordBeforeIt) {
  EXPECT_EQ(CountWrong([] {
              const Rig rig;
              rig.Check(rig.one.WaitFor(rig.event));  // never recorded: counts as done
              rig.Check(SetTo(1, rig.x, rig.one));
              rig.Check(rig.event.Record(rig.one));
              rig.Check(SetTo(2, rig.x, rig.one));
              rig.Check(rig.event.Record(rig.one));
              rig.Check(rig.other.WaitFor(rig.event));
              rig.Check(Launch(Add, {1, 1, rig.other}, 10, rig.x, rig.y));
              rig.Check(rig.second.Record(rig.other));
              // Each waits for the other's past; waiting for later records would deadlock.
              rig.Check(rig.one.WaitFor(rig.second));
              rig.Check(rig.event.Record(rig.one));
              rig.Check(SetTo(3, rig.x, rig.one));
              const int y = rig.Read(rig.y, rig.other);
              return y == 12 && rig.Read(rig.x, rig.one) == 3;
            }),
            0u);
}

// Three independent streams of two kernels each: 90 orders.
TEST(LateStreams, HaveEveryOrderThatCudaPermits) {
  std::set<int> orders;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    const LateStreams late(seed);
    const Rig rig;
    const Stream third = *Stream::Create();
    for (int digit = 1; digit <= 2; ++digit) {
      rig.Check(Launch(TimesTenAnd, {1, 1, rig.one}, digit, rig.x));
      rig.Check(Launch(TimesTenAnd, {1, 1, rig.other}, digit + 2, rig.x));
      rig.Check(Launch(TimesTenAnd, {1, 1, third}, digit + 4, rig.x));
    }
    rig.Check(FinishStreams());
    orders.insert(rig.Read(rig.x, rig.one));
  }
  EXPECT_EQ(orders.size(), 90u);
  for (const int order : orders) {
    const std::string digits = std::to_string(order);
    EXPECT_TRUE(digits.find('1') < digits.find('2') && digits.find('3') < digits.find('4') &&
                digits.find('5') < digits.find('6'))
        << order;
  }
}

TEST(LateStreams, GiveTheSameOrderForASeed) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<int> orders;
    for (int time = 0; time < 2; ++time) {
      const LateStreams late(seed);
      const Rig rig;
      for (int digit = 1; digit <= 4; ++digit) {
        rig.Check(Launch(TimesTenAnd, {1, 1, rig.one}, digit, rig.x));
        rig.Check(Launch(TimesTenAnd, {1, 1, rig.other}, digit + 4, rig.x));
      }
      rig.Check(FinishStreams());
      orders.push_back(rig.Read(rig.x, rig.one));
    }
    EXPECT_EQ(orders[0], orders[1]);
  }
}

// Use before the memory is allocated in its stream's order, and after it is freed there.
TEST(LateStreams, FindAnotherStreamThatUsesScratchMemory) {
  for (const bool waits : {true, false}) {
    uint64_t wrong = 0;
    for (uint64_t seed = 0; seed <= kSeeds; ++seed) {
      const LateStreams late(seed);
      const Rig rig;
      {
        const auto scratch = ScratchBuffer::Create(sizeof(int), rig.one);
        rig.Check(scratch.status());
        rig.Check(SetTo(5, scratch->As<int>(), rig.one));
        rig.Check(rig.event.Record(rig.one));
        rig.Check(rig.other.WaitFor(rig.event));
        rig.Check(Launch(Add, {1, 1, rig.other}, 1, scratch->As<int>(), rig.y));
        rig.Check(rig.second.Record(rig.other));
        if (waits) rig.Check(rig.one.WaitFor(rig.second));
      }
      const bool freed_first = !rig.one.Synchronize().ok() || !rig.other.Synchronize().ok();
      wrong += freed_first || rig.Read(rig.y, rig.other) != 6 ? 1 : 0;
    }
    ExpectFound(wrong, waits, kSeeds / 4);
  }
}

TEST(LateStreams, FindMemoryThatIsUnpinnedTooEarly) {
  using Pages = std::unique_ptr<void, decltype(&std::free)>;
  for (const bool waits : {true, false}) {
    uint64_t found = 0;
    for (uint64_t seed = 0; seed <= kSeeds; ++seed) {
      const Pages pages(std::aligned_alloc(4096, 4096), std::free);
      const LateStreams late(seed);
      const Rig rig;
      auto registered = RegisteredMemory::Create(pages.get(), 4096);
      rig.Check(registered.status());
      rig.Check(CopyToHostAsync(pages.get(), rig.x, sizeof(int), rig.one));
      if (waits) rig.Check(rig.one.Synchronize());
      { const RegisteredMemory gone = *std::move(registered); }
      const absl::Status status = rig.one.Synchronize();
      found += absl::StrContains(std::string(status.message()), "unpinned") ? 1 : 0;
    }
    ExpectFound(found, waits, kMost);
  }
}

TEST(LateStreams, ErrorIsReportedByNextWaitAndPersists) {
  const LateStreams late(/*seed=*/0);
  {
    const Rig rig;
    rig.Check(Launch(Faulty, {1, 32, rig.one}, rig.x));
    rig.Check(SetTo(5, rig.y, rig.one));
    rig.Check(rig.event.Record(rig.other));
    rig.Check(rig.event.Synchronize());  // independent of the fault
    const absl::Status error = rig.one.Synchronize();
    EXPECT_TRUE(absl::IsInternal(error)) << error;
    EXPECT_TRUE(absl::StrContains(std::string(error.message()), "__syncthreads")) << error;
    EXPECT_EQ(rig.other.Synchronize(), error);
    EXPECT_EQ(SetTo(5, rig.x, rig.other), error);
    EXPECT_EQ(rig.event.Record(rig.other), error);
    EXPECT_TRUE(FinishStreams().ok()) << "told already";
    EXPECT_EQ(rig.Read(rig.y, rig.one), 0) << "nothing is done behind it";
    rig.Check(Launch(Faulty, {1, 32, rig.one}, rig.x));
  }
  EXPECT_TRUE(absl::IsInternal(FinishStreams()));
  EXPECT_TRUE(FinishStreams().ok());
}

TEST(LateStreams, FreeingDeviceMemoryWaitsForAll) {
  EXPECT_EQ(CountWrong([] {
              const Rig rig;
              auto gone = DeviceBuffer::Create(sizeof(int));
              rig.Check(gone.status());
              rig.Check(SetTo(5, gone->As<int>(), rig.one));
              rig.Check(Launch(Add, {1, 1, rig.one}, 1, gone->As<int>(), rig.host));
              { const DeviceBuffer freed = *std::move(gone); }
              return rig.host[0] == 6;
            }),
            0u);
}

TEST(LateStreams, DoWhatIsQueuedWhenTheyAreGone) {
  EXPECT_EQ(CountWrong([] {
              const Rig rig;
              {
                const Stream gone = *Stream::Create();
                rig.Check(SetTo(5, rig.x, gone));
                rig.Check(rig.event.Record(gone));
              }
              rig.Check(rig.one.WaitFor(rig.event));
              return rig.Read(rig.x, rig.one) == 5;
            }),
            0u);
}

// Repeated calls eventually return true, and the work is then done.
TEST(LateStreams, IsDoneComesToBeTrueAndIsNotAlwaysSoAtOnce) {
  uint64_t at_once = 0;
  EXPECT_EQ(CountWrong([&] {
              const Rig rig;
              rig.Check(SetTo(5, rig.x, rig.other));
              rig.Check(rig.second.Record(rig.other));
              rig.Check(rig.one.WaitFor(rig.second));
              rig.Check(CopyToHostAsync(rig.host, rig.x, sizeof(int), rig.one));
              rig.Check(rig.event.Record(rig.one));
              int asked = 1;
              for (; !*rig.event.IsDone(); ++asked) EXPECT_LT(asked, 1000);
              at_once += asked == 1 ? 1 : 0;
              return rig.host[0] == 5;
            }),
            0u);
  EXPECT_GT(at_once, 0u);
  EXPECT_LT(at_once, kSeeds / 2);
}

TEST(LateStreams, AreForSeveralOsThreads) {
  const LateStreams late(/*seed=*/3);
  std::vector<std::thread> threads;
  std::vector<int> wrong(3, 0);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&wrong, i] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        const Rig rig;
        rig.Check(SetTo(i, rig.x, rig.one));
        rig.Check(rig.event.Record(rig.one));
        rig.Check(rig.other.WaitFor(rig.event));
        rig.Check(Launch(Add, {1, 1, rig.other}, repeat, rig.x, rig.y));
        wrong[i] += rig.Read(rig.y, rig.other) == i + repeat ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(3, 0));
}

TEST(LateStreams, RefuseAtOnceWhatNoGpuTakes) {
  const LateStreams late(/*seed=*/0);
  const Rig rig;
  EXPECT_TRUE(absl::IsInvalidArgument(Launch(Set, {1, 1025, rig.one}, 1, rig.x)));
  int host = 0;
  EXPECT_TRUE(absl::IsInternal(Launch(Set, {1, 1, rig.one}, 1, &host)));
  rig.Check(rig.one.Synchronize());
}

// Runs in a separate process whose environment makes streams late.
TEST(LateStreamsDeathTest, DrawASeedAndPrintItUnlessOneIsGiven) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use = [] {
    setenv("TUG_EMULATED_STREAMS", "late", 1);
    const Stream stream = *Stream::Create();
    std::exit(stream.Synchronize().ok() ? 0 : 1);
  };
  EXPECT_EXIT(use(), testing::ExitedWithCode(0), "^emulated streams are late with seed [1-9]");
  EXPECT_EXIT(
      {
        setenv("TUG_EMULATED_STREAMS", "late", 1);
        emulation::SeedStreams(7);
        use();
      },
      testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace tug::kernels::cuda
