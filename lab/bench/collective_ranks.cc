// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/collective_ranks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/memory/large_blocks.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "transport/dual_transport.h"

namespace tug {
namespace {

// For a rank to touch its memory, or to carry out an order; a dead rank is noticed at once.
constexpr absl::Duration kPatience = absl::Minutes(10);

// The parent's orders: "all-reduce ALGORITHM PARTS RANKS_PER_HOST BYTES COUNT", "neighbours BYTES
// COUNT", "sum BYTES COUNT". A rank replies with the seconds per call.

// Schedule in which each rank r sends part r to the next one.
CollectiveSchedule NeighboursSchedule(uint32_t rank, uint32_t world) {
  CollectiveSchedule schedule{.parts = world, .steps = {{}}};
  if (world == 1) return schedule;
  const uint32_t before = (rank + world - 1) % world;
  schedule.steps[0].sends = {{.peer = (rank + 1) % world, .begin = rank, .end = rank + 1}};
  schedule.steps[0].receives = {{.peer = before, .begin = before, .end = before + 1}};
  return schedule;
}

class Rank {
 public:
  Rank(const CollectiveSetting& setting, uint32_t rank, BenchChild& child)
      : setting_(setting), rank_(rank), child_(child) {}

  absl::Status Run(uint64_t job) {
    KeepLargeBlocksMapped();
    RETURN_IF_ERROR(Open(job));
    while (true) {
      ASSIGN_OR_RETURN(const std::string order, child_.Listen());
      ASSIGN_OR_RETURN(const double seconds, CarryOut(absl::StrSplit(order, ' ')));
      child_.Say(absl::StrCat(seconds));
    }
  }

 private:
  std::string Host() const {
    return setting_.hosts.empty() ? "" : setting_.hosts[rank_ % setting_.hosts.size()];
  }

  absl::Status Open(uint64_t job) {
    DualTransport::Options options;
    options.tcp.self = WorkerPeer(rank_ + 1);
    ASSIGN_OR_RETURN(options.tcp.bind_host, BenchAddress(Host()));
    options.tcp.checksum = setting_.checksum;
    options.job = job;
    options.shared_memory = setting_.shared_memory;
    ASSIGN_OR_RETURN(transport_, DualTransport::Create(options));
    child_.Say(transport_->endpoint());
    ASSIGN_OR_RETURN(const std::string endpoints, child_.Listen());
    CommunicatorOptions group;
    group.group.rank = rank_;
    group.group.job = job;
    if (setting_.chunk_bytes > 0) group.group.chunk_bytes = setting_.chunk_bytes;
    for (uint32_t rank = 0; rank < setting_.world; ++rank) {
      group.group.peers.push_back(WorkerPeer(rank + 1));
    }
    group.endpoints = absl::StrSplit(endpoints, ' ');
    ASSIGN_OR_RETURN(communicator_, Communicator::Create(std::move(group), *transport_));
    buffer_ = transport_->NewBuffer(CollectiveRanks::MemoryBytes(setting_));
    std::memset(buffer_->data(), 0, buffer_->size_bytes());
    child_.Say("ready");
    return absl::OkStatus();
  }

  absl::StatusOr<double> CarryOut(const std::vector<std::string>& order) {
    std::vector<uint64_t> numbers;
    for (const std::string& word : order) {
      uint64_t number = 0;
      if (absl::SimpleAtoi(word, &number)) numbers.push_back(number);
    }
    if (order[0] == "all-reduce" && numbers.size() == 4) {
      const AllReduceSettings settings{.parts = static_cast<uint32_t>(numbers[0]),
                                       .ranks_per_host = static_cast<uint32_t>(numbers[1])};
      return TimeRuns(FindAllReduce(order[1])->schedule(rank_, setting_.world, settings),
                      numbers[2], numbers[3]);
    }
    if (order[0] == "neighbours" && numbers.size() == 2) {
      return TimeRuns(NeighboursSchedule(rank_, setting_.world), setting_.world * numbers[0],
                      numbers[1]);
    }
    return TimeSums(numbers[0], numbers[1]);
  }

  // The first call is not measured: after it all ranks are running.
  absl::StatusOr<double> TimeRuns(const CollectiveSchedule& schedule, uint64_t bytes,
                                  uint64_t count) {
    const CollectiveBuffer buffer{buffer_, std::span(buffer_->data(), bytes)};
    RETURN_IF_ERROR(communicator_->Run(schedule, buffer, setting_.type));
    const int64_t begin = MonotonicNs();
    for (uint64_t i = 0; i < count; ++i) {
      RETURN_IF_ERROR(communicator_->Run(schedule, buffer, setting_.type));
    }
    return static_cast<double>(MonotonicNs() - begin) * 1e-9 / static_cast<double>(count);
  }

  double TimeSums(uint64_t bytes, uint64_t count) {
    const uint64_t half = buffer_->size_bytes() / 2;
    const int64_t begin = MonotonicNs();
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; ++i) {
      AddElements(setting_.type, buffer_->data() + at, buffer_->data() + half + at,
                  buffer_->data() + at, bytes / ElementBytes(setting_.type));
      at += bytes;
      if (at + bytes > half) at = 0;
    }
    return static_cast<double>(MonotonicNs() - begin) * 1e-9 / static_cast<double>(count);
  }

  const CollectiveSetting& setting_;
  const uint32_t rank_;
  BenchChild& child_;
  std::unique_ptr<DualTransport> transport_;
  std::unique_ptr<Communicator> communicator_;
  std::shared_ptr<AlignedBuffer> buffer_;
};

}  // namespace

absl::Status CollectiveRanks::Start(const CollectiveSetting& setting) {
  world_ = setting.world;
  std::random_device random;
  const uint64_t job = (uint64_t{random()} << 32) | random();
  std::vector<std::string> endpoints;
  for (uint32_t rank = 0; rank < world_; ++rank) {
    const std::string host =
        setting.hosts.empty() ? "" : setting.hosts[rank % setting.hosts.size()];
    RETURN_IF_ERROR(processes_.Start(absl::StrCat("rank ", rank), host, [=](BenchChild& child) {
      return Rank(setting, rank, child).Run(job);
    }));
  }
  for (uint32_t rank = 0; rank < world_; ++rank) {
    ASSIGN_OR_RETURN(endpoints.emplace_back(), processes_.Hear(rank));
  }
  for (uint32_t rank = 0; rank < world_; ++rank) {
    processes_.Tell(rank, absl::StrJoin(endpoints, " "));
  }
  for (uint32_t rank = 0; rank < world_; ++rank) {
    RETURN_IF_ERROR(processes_.Hear(rank, kPatience).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<double> CollectiveRanks::TimeOrder(const std::string& order) {
  for (uint32_t rank = 0; rank < world_; ++rank) processes_.Tell(rank, order);
  double slowest = 0;
  for (uint32_t rank = 0; rank < world_; ++rank) {
    ASSIGN_OR_RETURN(const std::string answer, processes_.Hear(rank, kPatience));
    double seconds = 0;
    if (!absl::SimpleAtod(answer, &seconds)) {
      return absl::InternalError(absl::StrCat("rank ", rank, " says: ", answer));
    }
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

absl::StatusOr<double> CollectiveRanks::TimeAllReduce(const AllReduceAlgorithm& algorithm,
                                                      const AllReduceSettings& settings,
                                                      uint64_t bytes, uint64_t count) {
  return TimeOrder(absl::StrCat("all-reduce ", algorithm.name, " ", settings.parts, " ",
                                settings.ranks_per_host, " ", bytes, " ", count));
}

absl::StatusOr<double> CollectiveRanks::TimeNeighbours(uint64_t bytes, uint64_t count) {
  return TimeOrder(absl::StrCat("neighbours ", bytes, " ", count));
}

absl::StatusOr<double> CollectiveRanks::TimeSum(uint64_t bytes, uint64_t count) {
  return TimeOrder(absl::StrCat("sum ", bytes, " ", count));
}

}  // namespace tug
