// SPDX-License-Identifier: Apache-2.0
// Collectives between real processes, over TCP and through shared memory; also with killed ranks.

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "collective/algorithms.h"
#include "collective/collective_test_support.h"
#include "collective/communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "limits/bench_processes.h"
#include "transport/dual_transport.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kPeriod = 8;  // contributions repeat after this many elements
// Timeout for one algorithm on a machine busy with other tests; far below
// RankGroupOptions::patience.
constexpr absl::Duration kPatience = absl::Minutes(2);

struct Setting {
  uint32_t world = 1;
  bool shared_memory = false;
  absl::Duration timeout = absl::Seconds(30);
};

// Transport and communicator of a rank, in its process.
struct Rank {
  uint32_t rank = 0;
  std::unique_ptr<DualTransport> transport;
  std::unique_ptr<Communicator> communicator;
};

using Body = std::function<absl::Status(Rank&, BenchChild&)>;

absl::Status RunRank(const Setting& setting, uint64_t job, uint32_t rank, BenchChild& child,
                     const Body& body) {
  Rank self{.rank = rank};
  DualTransport::Options options;
  options.tcp.self = WorkerPeer(rank + 1);
  options.tcp.bind_host = "127.0.0.1";
  options.job = job;
  options.shared_memory = setting.shared_memory;
  ASSIGN_OR_RETURN(self.transport, DualTransport::Create(options));
  child.Say(self.transport->endpoint());
  ASSIGN_OR_RETURN(const std::string endpoints, child.Listen());
  CommunicatorOptions group;
  group.group.rank = rank;
  group.group.job = job;
  group.group.timeout = setting.timeout;
  for (uint32_t r = 0; r < setting.world; ++r) group.group.peers.push_back(WorkerPeer(r + 1));
  group.endpoints = absl::StrSplit(endpoints, ' ');
  ASSIGN_OR_RETURN(self.communicator, Communicator::Create(std::move(group), *self.transport));
  return body(self, child);
}

// Starts a process per rank; returns when every rank has the endpoints of all.
void Start(BenchProcesses& processes, const Setting& setting, const Body& body) {
  std::random_device random;
  const uint64_t job = (uint64_t{random()} << 32) | random();
  std::vector<std::string> endpoints;
  for (uint32_t rank = 0; rank < setting.world; ++rank) {
    const absl::Status started = processes.Start(
        absl::StrCat("rank ", rank), "",
        [=](BenchChild& child) { return RunRank(setting, job, rank, child, body); });
    ASSERT_TRUE(started.ok()) << started;
    const auto endpoint = processes.Hear(rank);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoints.push_back(*endpoint);
  }
  for (uint32_t rank = 0; rank < setting.world; ++rank) {
    processes.Tell(rank, absl::StrJoin(endpoints, " "));
  }
}

// Contributions repeat after kPeriod elements, hence sums do.
absl::Status CheckSum(std::span<const float> sum, uint32_t world, uint64_t round) {
  const uint64_t first = std::min<uint64_t>(kPeriod, sum.size());
  const std::vector<std::byte> expected = ExactSum(ElementType::kFp32, world, first, round);
  const size_t rest = sum.size_bytes() - first * sizeof(float);
  if (std::memcmp(sum.data(), expected.data(), expected.size()) == 0 &&
      std::memcmp(sum.data(), sum.data() + first, rest) == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError("the sum is wrong");
}

absl::Status SumOnce(Rank& self, const AllReduceAlgorithm& algorithm, uint64_t elements,
                     uint64_t round) {
  const uint32_t world = self.communicator->world();
  const AllReduceSettings settings{.parts = 16, .ranks_per_host = 2};
  const auto memory = self.transport->NewBuffer(elements * sizeof(float));
  std::array<float, kPeriod> contribution;
  for (uint64_t i = 0; i < kPeriod; ++i) contribution[i] = ContributionOf(self.rank, i, round);
  for (uint64_t i = 0; i < elements; ++i) memory->floats()[i] = contribution[i % kPeriod];
  RETURN_IF_ERROR(self.communicator->Run(algorithm.schedule(self.rank, world, settings),
                                         BufferOf(memory, memory->size_bytes()),
                                         ElementType::kFp32));
  const absl::Status checked = CheckSum(memory->floats(), world, round);
  if (checked.ok()) return checked;
  return absl::InternalError(absl::StrCat(std::string(checked.message()), ": ", algorithm.name,
                                          " of ", elements, " on rank ", self.rank, " of ", world));
}

void SumInProcesses(const Setting& setting, std::vector<std::string> algorithms,
                    std::vector<uint64_t> sizes) {
  BenchProcesses processes;
  Start(processes, setting, [=](Rank& self, BenchChild& child) -> absl::Status {
    uint64_t round = 0;
    for (const std::string& name : algorithms) {
      for (const uint64_t elements : sizes) {
        RETURN_IF_ERROR(SumOnce(self, *FindAllReduce(name), elements, ++round));
      }
      child.Say(name);
    }
    return child.Listen().status();
  });
  for (const std::string& name : algorithms) {
    for (uint32_t rank = 0; rank < setting.world; ++rank) {
      const auto heard = processes.Hear(rank, kPatience);
      ASSERT_TRUE(heard.ok()) << name << ": " << heard.status();
      EXPECT_EQ(*heard, name);
    }
  }
}

std::vector<std::string> AllAlgorithms() {
  std::vector<std::string> names;
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    names.emplace_back(algorithm.name);
  }
  return names;
}

class CollectiveProcesses : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Transports, CollectiveProcesses, ::testing::Values(false, true),
                         [](const ::testing::TestParamInfo<bool>& info) {
                           return info.param ? "SharedMemory" : "Tcp";
                         });

TEST_P(CollectiveProcesses, SumEveryAlgorithmInWorldsOfOneToEight) {
  for (uint32_t world = 1; world <= 8; ++world) {
    SCOPED_TRACE(world);
    SumInProcesses({.world = world, .shared_memory = GetParam()}, AllAlgorithms(),
                   {0, 1, kMiB / 1024, kMiB / 4});
  }
}

TEST_P(CollectiveProcesses, SumLargeBuffersInWorldsOfOneToEight) {
  for (uint32_t world = 1; world <= 8; ++world) {
    SCOPED_TRACE(world);
    SumInProcesses({.world = world, .shared_memory = GetParam()}, {"ring"}, {64 * kMiB / 4});
  }
  SumInProcesses({.world = 3, .shared_memory = GetParam()}, AllAlgorithms(), {64 * kMiB / 4});
}

// The rank is killed during one of many all-reduces.
TEST_P(CollectiveProcesses, AKilledRankIsNamedByAllOthers) {
  constexpr uint32_t kWorld = 4;
  constexpr uint32_t kKilled = 1;
  constexpr absl::Duration kTimeout = absl::Seconds(2);
  for (const char* const name : {"ring", "binary_tree"}) {
    SCOPED_TRACE(name);
    BenchProcesses processes;
    Start(processes, {.world = kWorld, .shared_memory = GetParam(), .timeout = kTimeout},
          [=](Rank& self, BenchChild& child) -> absl::Status {
            const CollectiveSchedule schedule =
                FindAllReduce(name)->schedule(self.rank, kWorld, {.parts = 16});
            const auto memory = self.transport->NewBuffer(16 * kMiB);
            std::memset(memory->data(), 0, memory->size_bytes());
            absl::Status status;
            for (int round = 0; status.ok(); ++round) {
              if (round == 2) child.Say("at work");
              status = self.communicator->Run(schedule, BufferOf(memory, memory->size_bytes()),
                                              ElementType::kFp32);
            }
            child.Say(std::string(status.message()));
            return child.Listen().status();
          });
    for (uint32_t rank = 0; rank < kWorld; ++rank) {
      const auto heard = processes.Hear(rank);
      ASSERT_TRUE(heard.ok()) << heard.status();
    }
    ASSERT_EQ(kill(processes.pid(kKilled), SIGKILL), 0);
    for (uint32_t rank = 0; rank < kWorld; ++rank) {
      if (rank == kKilled) continue;
      const auto error = processes.Hear(rank, kPatience);
      ASSERT_TRUE(error.ok()) << error.status();
      EXPECT_THAT(*error, HasSubstr("rank 1 (node 2) ")) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace tug
