// SPDX-License-Identifier: Apache-2.0
// Eight workers push and pull small partitions through two lanes as fast as they can, in a single
// process, so that sanitizers see every thread: clients and their threads, lanes, libzmq's. All
// workers must pull the same weights in every version, and memory must not grow.
//
//   bazel test //tests:storm_test
//   bazel run --config=tsan //tests:storm_test -- --operations=1000000
//   bazel run //tests:storm_test -- --seconds=600        # a soak: prints memory every 10 s
//
// An operation is the push and pull of one partition by one worker.

#include <malloc.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/memory/large_blocks.h"
#include "blocks/view_lanes.h"
#include "exchange/client.h"
#include "gtest/gtest.h"
#include "lab/bench/bench_job.h"
#include "server/lane.h"
#include "transport/open_transport.h"

namespace tug {
namespace {

constexpr uint32_t kWorkers = 8;
constexpr uint32_t kBlocks = 64;
constexpr uint32_t kFirstWorkerNode = 100;
constexpr absl::Duration kSample = absl::Seconds(10);

// Set from the command line.
uint64_t operations = 40'000;  // total per test
double soak_seconds = 0;       // if not 0: duration, instead of a number of operations

// Resident memory of this process, MiB.
double ResidentMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, "VmRSS:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

// Memory allocated from the C library, MiB: if only resident memory grows, it is fragmentation.
double InUseMib() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

// Hash of the weights that the first worker saw, by (block, version); all others must see the same.
class Witness {
 public:
  void Saw(uint32_t block, uint64_t version, uint64_t hash) {
    absl::MutexLock lock(&mutex_);
    Seen& seen = blocks_[block][version % 2];
    if (seen.version != version) seen = {version, hash};
    EXPECT_EQ(seen.hash, hash) << "block " << block << " version " << version;
  }

 private:
  struct Seen {
    uint64_t version = ~uint64_t{0};
    uint64_t hash = 0;
  };
  absl::Mutex mutex_;
  // No worker is two versions ahead of another.
  std::array<std::array<Seen, 2>, kBlocks> blocks_ ABSL_GUARDED_BY(mutex_);
};

class StormWorker {
 public:
  StormWorker(const LaneJob& job, const View& view, uint32_t index, Witness& witness)
      : job_(job), index_(index), witness_(witness) {
    const PeerId self = WorkerPeer(kFirstWorkerNode + index);
    auto opened = OpenTransport(self, job.job, job.config.comm(), "");
    EXPECT_TRUE(opened.ok()) << opened.status();
    EXPECT_TRUE(ConnectToLanes(view, self, *opened->transport).ok());
    client_ = std::make_unique<ExchangeClient>(
        ExchangeOptions{job.job, view.timeline(), view.number(), LaneNumberOfSegment(view),
                        job.config.comm()},
        job.table, std::move(opened->transport));
    for (uint32_t block = 0; block < kBlocks; ++block) {
      const size_t size_bytes = job.table.block_elements(block) * sizeof(float);
      weights_.emplace_back(size_bytes);
      gradients_.push_back(client_->NewBuffer(size_bytes));
      Pull(block, 0);
    }
  }

  void Step(uint64_t clock) {
    for (uint32_t block = 0; block < kBlocks; ++block) {
      const auto pulled = client_->WaitPulled(block, clock);
      ASSERT_TRUE(pulled.ok() && *pulled);
      Look(block, clock);
      ASSERT_TRUE(client_->WaitCommitted(block, index_).ok());
      Push(block, clock);
      Pull(block, clock + 1);
    }
  }

  // Waits until `version` includes this worker's pushes: then no other worker waits for it.
  void Finish(uint64_t version) {
    for (uint32_t block = 0; block < kBlocks; ++block) {
      const auto pulled = client_->WaitPulled(block, version);
      ASSERT_TRUE(pulled.ok() && *pulled);
      Look(block, version);
    }
  }

  ExchangeCounters counters() const { return client_->counters(); }

 private:
  void Look(uint32_t block, uint64_t version) {
    const InPlaceWeights in_place = client_->TakeInPlace(block);
    const std::span<const float> seen =
        in_place.elements.empty() ? std::as_const(weights_[block]).floats() : in_place.elements;
    witness_.Saw(block, version, XXH3_64bits(seen.data(), seen.size_bytes()));
  }
  void Pull(uint32_t block, uint64_t version) {
    client_->Pull({.block = block,
                   .clock = version,
                   .destination = weights_[block].floats(),
                   .allow_in_place = true});
  }
  void Push(uint32_t block, uint64_t clock) {
    std::shared_ptr<AlignedBuffer>& gradient = gradients_[block];
    if (!IsOnlyOwner(gradient)) gradient = client_->NewBuffer(gradient->size_bytes());
    const float value = static_cast<float>((clock * 31 + block * 7 + index_) % 1000) - 500.0f;
    std::ranges::fill(gradient->floats(), value);
    client_->Push({.block = block,
                   .virtual_worker = index_,
                   .clock = clock,
                   .token_count = 1,
                   .gradient = Lease(gradient, std::as_const(*gradient).floats())});
  }

  const LaneJob& job_;
  const uint32_t index_;
  Witness& witness_;
  std::vector<AlignedBuffer> weights_;
  std::vector<std::shared_ptr<AlignedBuffer>> gradients_;
  std::unique_ptr<ExchangeClient> client_;
};

// Ends a soak, and checks that memory stays flat after a tenth of the time.
class Soak {
 public:
  bool Over() {
    const absl::Time now = absl::Now();
    const double elapsed = absl::ToDoubleSeconds(now - begin_);
    if (now >= next_sample_) {
      next_sample_ += kSample;
      const double mib = ResidentMib();
      std::printf("%4.0f s  %.1f MiB resident, %.2f MiB in use\n", elapsed, mib, InUseMib());
      std::fflush(stdout);
      if (settled_ == 0 && elapsed > soak_seconds / 10) settled_ = mib;
      last_ = mib;
    }
    return elapsed >= soak_seconds;
  }
  void ExpectFlat() const { EXPECT_LE(last_, settled_ * 1.02 + 1) << "MiB at the end"; }

 private:
  const absl::Time begin_ = absl::Now();
  absl::Time next_sample_ = begin_;
  double settled_ = 0;
  double last_ = 0;
};

void Storm(const std::string& transport) {
  BenchSetting setting;
  setting.transport = transport;
  setting.bytes = 4096;
  setting.blocks = kBlocks;
  setting.lanes = 2;
  setting.workers = kWorkers;
  setting.optimizer = true;
  const auto job = MakeBenchJob(setting, 1);
  ASSERT_TRUE(job.ok()) << job.status();
  std::vector<std::unique_ptr<LaneThread>> lanes;
  std::vector<std::string> endpoints;
  for (uint32_t i = 0; i < setting.lanes; ++i) {
    auto lane = LaneThread::Bind(**job, i, "127.0.0.1");
    ASSERT_TRUE(lane.ok()) << lane.status();
    endpoints.push_back((*lane)->endpoint());
    lanes.push_back(*std::move(lane));
  }
  const View view = MakeBenchView(setting, endpoints);
  for (const auto& lane : lanes) lane->SetView(view);

  Witness witness;
  Soak soak;
  const bool soaking = soak_seconds > 0;
  const uint64_t clocks = operations / (kWorkers * kBlocks) + 1;
  // Worker 0 sets the last clock for all; the others are at most one step away.
  std::atomic<uint64_t> last_clock = soaking ? ~uint64_t{0} : clocks - 1;
  std::atomic<uint64_t> done = 0;
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      StormWorker worker(**job, view, w, witness);
      for (uint64_t clock = 0; clock <= last_clock; ++clock) {
        worker.Step(clock);
        done += kBlocks;
        if (w == 0 && soaking && last_clock == ~uint64_t{0} && soak.Over()) last_clock = clock + 2;
      }
      worker.Finish(last_clock + 1);
      EXPECT_EQ(worker.counters().resent, 0u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%llu operations over %s\n", static_cast<unsigned long long>(done.load()),
              transport.c_str());
  if (soaking) soak.ExpectFlat();
  for (const auto& lane : lanes) {
    const LaneReport report = lane->report();
    EXPECT_EQ(report.figures.messages_dropped, 0u);
    EXPECT_TRUE(report.failure.ok()) << report.failure;
  }
}

TEST(Storm, OverSharedMemoryEverybodySeesTheSameWeights) { Storm("shm"); }
TEST(Storm, OverTcpEverybodySeesTheSameWeights) { Storm("tcp"); }

}  // namespace

void SetStorm(absl::string_view argument) {
  if (absl::ConsumePrefix(&argument, "--operations=")) {
    EXPECT_TRUE(absl::SimpleAtoi(argument, &operations)) << argument;
  } else if (absl::ConsumePrefix(&argument, "--seconds=")) {
    EXPECT_TRUE(absl::SimpleAtod(argument, &soak_seconds)) << argument;
  }
}

}  // namespace tug

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  tug::KeepLargeBlocksMapped();
  for (int i = 1; i < argc; ++i) tug::SetStorm(argv[i]);
  return RUN_ALL_TESTS();
}
