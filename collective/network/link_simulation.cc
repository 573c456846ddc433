// SPDX-License-Identifier: Apache-2.0
#include "collective/network/link_simulation.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"

namespace tug {
namespace {

// Relative tolerance for simultaneous events: sums of the same terms in different orders.
constexpr double kAtOnce = 1e-12;

// Connection from one rank to another.
struct Path {
  uint32_t out = 0;  // sender's port
  uint32_t in = 0;   // receiver's port
  LinkCost link;
};

// Ports 2r (out) and 2r + 1 (in) belong to rank r within its host; ports of hosts follow.
Path PathBetween(const HostLinks& links, uint32_t world, uint32_t from, uint32_t to) {
  const uint32_t host = from / links.ranks_per_host, other = to / links.ranks_per_host;
  if (host == other) return {2 * from, 2 * to + 1, links.within_host};
  return {2 * (world + host), 2 * (world + other) + 1, links.between_hosts};
}

struct SimulatedMessage {
  uint32_t step = 0;
  uint32_t from = 0;
  uint32_t number = 0;  // among all messages of its sender
  Path path;
  double send_seconds = 0;  // time the sender's port is busy
  double sum_seconds = 0;   // time to sum its bytes
  double seconds = 0;       // time the receiver's port is busy; then the parts are ready
  uint32_t waits_for = 0;   // number of messages that must be done, or started, first
  std::vector<size_t> when_begun, when_done;  // messages to release
};

class LinkSimulation {
 public:
  LinkSimulation(std::span<const CollectiveSchedule> family, const HostLinks& links, uint64_t bytes)
      : family_(family), free_(4 * family.size(), true) {
    for (uint32_t rank = 0; rank < family.size(); ++rank) AddMessages(rank, links, bytes);
    for (uint32_t rank = 0; rank < family.size(); ++rank) AddWaits(rank);
    for (size_t i = 0; i < messages_.size(); ++i) Offer(i);
  }

  double Run() {
    size_t done = 0;
    double last = 0;
    while (true) {
      Begin();
      if (events_.empty()) break;
      now_ = events_.top().seconds;
      while (!events_.empty() && events_.top().seconds <= now_ * (1 + kAtOnce)) {
        const Event event = events_.top();
        events_.pop();
        const SimulatedMessage& message = messages_[event.message];
        if (event.is_sent) {
          free_[message.path.out] = true;
          continue;
        }
        free_[message.path.in] = true;
        last = event.seconds;
        ++done;
        for (size_t next : message.when_done) Release(next);
      }
    }
    TUG_CHECK(done == messages_.size());
    return last;
  }

 private:
  struct Event {
    double seconds;
    size_t message;
    bool is_sent;  // true: sent; false: done
    bool operator>(const Event& other) const { return seconds > other.seconds; }
  };
  using Order = std::tuple<uint32_t, uint32_t, uint32_t, size_t>;  // step, sender, number, message

  // Adds the messages that a rank sends, in order.
  void AddMessages(uint32_t rank, const HostLinks& links, uint64_t bytes) {
    const auto world = static_cast<uint32_t>(family_.size());
    uint32_t number = 0;
    const CollectiveSchedule& schedule = family_[rank];
    for (uint32_t step = 0; step < schedule.steps.size(); ++step) {
      for (const Transfer& send : schedule.steps[step].sends) {
        const Path path = PathBetween(links, world, rank, send.peer);
        const double size = static_cast<double>(PartBegin(bytes, schedule.parts, send.end) -
                                                PartBegin(bytes, schedule.parts, send.begin));
        std::vector<size_t>& between = between_[{rank, send.peer}];
        if (!between.empty()) messages_[between.back()].when_begun.push_back(messages_.size());
        const uint32_t waits_for = between.empty() ? 0 : 1;
        between.push_back(messages_.size());
        messages_.push_back({.step = step,
                             .from = rank,
                             .number = number++,
                             .path = path,
                             .send_seconds = SendSeconds(path.link, size),
                             .sum_seconds = size * path.link.gamma,
                             .seconds = SendSeconds(path.link, size),
                             .waits_for = waits_for});
      }
    }
  }

  // Makes a rank's sends and receives wait for its earlier receives.
  void AddWaits(uint32_t rank) {
    const CollectiveSchedule& schedule = family_[rank];
    std::map<uint32_t, size_t> sent_to, received_from;        // by peer: number so far
    std::vector<std::optional<size_t>> last(schedule.parts);  // by part: its last writer
    for (const Step& step : schedule.steps) {
      for (const Transfer& send : step.sends) {
        const size_t message = between_[{rank, send.peer}][sent_to[send.peer]++];
        WaitForParts(send, last, message);
      }
      for (const Transfer& receive : step.receives) {
        const size_t message = between_[{receive.peer, rank}][received_from[receive.peer]++];
        if (receive.reduces) messages_[message].seconds += messages_[message].sum_seconds;
        WaitForParts(receive, last, message);
        std::fill(last.begin() + receive.begin, last.begin() + receive.end, message);
      }
    }
  }

  void WaitForParts(const Transfer& transfer, const std::vector<std::optional<size_t>>& last,
                    size_t message) {
    std::set<size_t> before;
    for (uint32_t part = transfer.begin; part < transfer.end; ++part) {
      if (last[part]) before.insert(*last[part]);
    }
    for (size_t other : before) Wait(other, message);
  }

  void Wait(size_t before, size_t message) {
    messages_[before].when_done.push_back(message);
    ++messages_[message].waits_for;
  }

  void Release(size_t message) {
    --messages_[message].waits_for;
    Offer(message);
  }

  void Offer(size_t i) {
    const SimulatedMessage& message = messages_[i];
    if (message.waits_for == 0) ready_.insert({message.step, message.from, message.number, i});
  }

  // Starts the messages that can start, the earliest step first.
  void Begin() {
    for (auto it = ready_.begin(); it != ready_.end();) {
      const size_t i = std::get<3>(*it);
      const SimulatedMessage& message = messages_[i];
      if (!free_[message.path.out] || !free_[message.path.in]) {
        ++it;
        continue;
      }
      free_[message.path.out] = free_[message.path.in] = false;
      events_.push({now_ + message.send_seconds, i, true});
      events_.push({now_ + message.seconds, i, false});
      it = ready_.erase(it);
      // The next message between the two ranks uses the same, now busy, port.
      for (size_t next : message.when_begun) Release(next);
    }
  }

  const std::span<const CollectiveSchedule> family_;
  std::vector<SimulatedMessage> messages_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<size_t>> between_;  // by (from, to)
  std::vector<bool> free_;                                                // by port
  std::set<Order> ready_;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
  double now_ = 0;
};

}  // namespace

double SimulatedSeconds(std::span<const CollectiveSchedule> family, const HostLinks& links,
                        uint64_t bytes) {
  return LinkSimulation(family, links, bytes).Run();
}

}  // namespace tug
