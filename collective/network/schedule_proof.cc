// SPDX-License-Identifier: Apache-2.0
#include "collective/network/schedule_proof.h"

#include <cstddef>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/check.h"

namespace tug {
namespace {

bool Overlap(const Transfer& a, const Transfer& b) { return a.begin < b.end && b.begin < a.end; }

struct Message {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t step = 0;
  Transfer sent, received;        // as its sender and its receiver describe it
  bool is_expected = false;       // its receiver has a matching receive
  bool is_read_aside = false;     // has a write hazard: read and write are two events
  std::vector<uint32_t> carried;  // terms
};

class Proof {
 public:
  Proof(std::span<const CollectiveSchedule> family, SumTerms& terms)
      : family_(family), terms_(terms) {}

  ScheduleProof Run(std::span<const std::vector<WriteHazard>> hazards,
                    const std::function<bool(uint32_t, uint32_t)>& begins_with) {
    for (uint32_t rank = 0; rank < family_.size(); ++rank) AddSends(rank);
    for (uint32_t rank = 0; rank < family_.size(); ++rank) AddReceives(rank);
    for (const Message& message : messages_) {
      if (!message.is_expected) Fail(message.from, "sends a message that no rank expects", message);
    }
    if (!error_.empty()) return {error_, {}};

    after_.resize(3 * messages_.size());
    for (uint32_t rank = 0; rank < family_.size(); ++rank) AddHazards(rank, hazards[rank]);
    for (uint32_t rank = 0; rank < family_.size(); ++rank) AddEdges(rank);
    SortEvents();
    if (error_.empty()) CheckWrites();
    if (error_.empty()) RunOnTerms(begins_with);
    return {error_, std::move(held_)};
  }

 private:
  // Numbers of a message's events.
  static size_t Post(size_t message) { return 3 * message; }
  static size_t Write(size_t message) { return 3 * message + 1; }
  size_t Read(size_t message) const {
    return messages_[message].is_read_aside ? 3 * message + 2 : Write(message);
  }
  void Order(size_t before, size_t event) { after_[event].push_back(before); }

  bool IsWrong(uint32_t rank, const Transfer& transfer) const {
    return transfer.peer == rank || transfer.peer >= family_.size() ||
           transfer.begin >= transfer.end || transfer.end > family_[0].parts;
  }

  void AddSends(uint32_t rank) {
    const CollectiveSchedule& schedule = family_[rank];
    if (schedule.parts != family_[0].parts) Fail(rank, "has different parts from rank 0", {});
    std::vector<std::vector<size_t>>& sends = sends_.emplace_back();
    for (uint32_t step = 0; step < schedule.steps.size(); ++step) {
      sends.emplace_back();
      for (const Transfer& send : schedule.steps[step].sends) {
        const Message message{.from = rank, .to = send.peer, .step = step, .sent = send};
        if (IsWrong(rank, send) || send.reduces) Fail(rank, "has an invalid send", message);
        between_[{rank, send.peer}].push_back(messages_.size());
        sends.back().push_back(messages_.size());
        messages_.push_back(message);
      }
    }
  }

  // Matches each receive with a send of the same step and parts.
  void AddReceives(uint32_t rank) {
    std::vector<std::vector<size_t>>& receives = receives_.emplace_back();
    std::map<uint32_t, size_t> received_from;
    const CollectiveSchedule& schedule = family_[rank];
    for (uint32_t step = 0; step < schedule.steps.size(); ++step) {
      receives.emplace_back();
      const std::vector<Transfer>& transfers = schedule.steps[step].receives;
      for (size_t i = 0; i < transfers.size(); ++i) {
        const Transfer& receive = transfers[i];
        const Message here{.step = step};
        if (IsWrong(rank, receive)) return Fail(rank, "has an invalid receive", here);
        for (size_t j = 0; j < i; ++j) {
          if (Overlap(receive, transfers[j])) Fail(rank, "has receives that overlap", here);
        }
        const std::vector<size_t>& sent = between_[{receive.peer, rank}];
        const size_t number = received_from[receive.peer]++;
        if (number >= sent.size()) return Fail(rank, "expects a message that no rank sends", here);
        Message& message = messages_[sent[number]];
        if (message.step != step || message.sent.begin != receive.begin ||
            message.sent.end != receive.end) {
          return Fail(rank, "expects a different message from the one sent", here);
        }
        message.received = receive;
        message.is_expected = true;
        receives.back().push_back(sent[number]);
      }
    }
  }

  void AddHazards(uint32_t rank, const std::vector<WriteHazard>& hazards) {
    for (const WriteHazard& hazard : hazards) {
      const size_t receive = receives_[rank][hazard.step][hazard.receive];
      messages_[receive].is_read_aside = true;
      hazards_.push_back({sends_[rank][hazard.send_step][hazard.send], receive});
    }
  }

  void AddEdges(uint32_t rank) {
    const uint32_t parts = family_[rank].parts;
    std::vector<std::optional<size_t>> written(parts);  // by part: last message written to it
    std::vector<std::vector<size_t>> sent(parts);   // by part: messages that carried it since then
    std::map<uint32_t, size_t> last_to, last_from;  // by peer
    for (uint32_t step = 0; step < family_[rank].steps.size(); ++step) {
      for (size_t send : sends_[rank][step]) {
        const Transfer& transfer = messages_[send].sent;
        const auto [last, first] = last_to.try_emplace(transfer.peer, send);
        if (!first) Order(Post(std::exchange(last->second, send)), Post(send));
        for (uint32_t part = transfer.begin; part < transfer.end; ++part) {
          if (written[part]) Order(Write(*written[part]), Post(send));
          sent[part].push_back(send);
        }
      }
      for (size_t receive : receives_[rank][step]) {
        const Transfer& transfer = messages_[receive].received;
        const auto [last, first] = last_from.try_emplace(transfer.peer, receive);
        if (!first) Order(Read(std::exchange(last->second, receive)), Read(receive));
        Order(Post(receive), Read(receive));
        if (messages_[receive].is_read_aside) Order(Read(receive), Write(receive));
        for (uint32_t part = transfer.begin; part < transfer.end; ++part) {
          if (written[part]) Order(Write(*written[part]), Write(receive));
          for (size_t send : sent[part]) {
            Order(Post(send), Write(receive));
            overwrites_.push_back({send, receive});
          }
          written[part] = receive;
          sent[part].clear();
        }
      }
    }
  }

  // Sorts events topologically; a cycle is an error.
  void SortEvents() {
    for (const auto& [send, receive] : hazards_) Order(Read(send), Write(receive));
    std::vector<std::vector<size_t>> before(after_.size());
    std::vector<size_t> waits(after_.size());
    for (size_t event = 0; event < after_.size(); ++event) {
      for (size_t other : after_[event]) before[other].push_back(event);
      waits[event] = after_[event].size();
      if (waits[event] == 0) sorted_.push_back(event);
    }
    for (size_t i = 0; i < sorted_.size(); ++i) {
      for (size_t next : before[sorted_[i]]) {
        if (--waits[next] == 0) sorted_.push_back(next);
      }
    }
    for (size_t event = 0; event < after_.size(); ++event) {
      const Message& message = messages_[event / 3];
      if (waits[event] > 0) Fail(message.to, "waits forever", message);
    }
  }

  void CheckWrites() {
    // By event: messages read before or in it, one bit each.
    const size_t words = messages_.size() / 64 + 1;
    std::vector<std::vector<uint64_t>> read(after_.size());
    for (size_t event : sorted_) {
      read[event].resize(words);
      for (size_t before : after_[event]) {
        for (size_t i = 0; i < words; ++i) read[event][i] |= read[before][i];
      }
      const size_t message = event / 3;
      if (event == Read(message)) read[event][message / 64] |= uint64_t{1} << message % 64;
    }
    for (const auto& [send, receive] : overwrites_) {
      if ((read[Write(receive)][send / 64] >> send % 64 & 1) == 0) {
        Fail(messages_[receive].to, "overwrites data that a peer has not read yet",
             messages_[receive]);
      }
    }
  }

  void RunOnTerms(const std::function<bool(uint32_t, uint32_t)>& begins_with) {
    for (uint32_t rank = 0; rank < family_.size(); ++rank) {
      std::vector<uint32_t>& held = held_.emplace_back(family_[rank].parts);
      for (uint32_t part = 0; part < held.size(); ++part) {
        if (begins_with(rank, part)) held[part] = terms_.Leaf(rank, part);
      }
    }
    for (size_t event : sorted_) {
      Message& message = messages_[event / 3];
      if (event == Post(event / 3)) {
        const std::vector<uint32_t>& held = held_[message.from];
        message.carried.assign(held.begin() + message.sent.begin, held.begin() + message.sent.end);
        for (uint32_t term : message.carried) {
          if (term == SumTerms::kNothing) Fail(message.from, "sends nothing", message);
        }
      } else if (event == Write(event / 3)) {
        for (uint32_t i = 0; i < message.carried.size(); ++i) {
          WritePart(message, held_[message.to][message.received.begin + i], message.carried[i]);
        }
      }
    }
  }

  void WritePart(const Message& message, uint32_t& held, uint32_t arrived) {
    const uint64_t here = terms_.ranks(held), there = terms_.ranks(arrived);
    if (!message.received.reduces) {
      if ((here & ~there) != 0) Fail(message.to, "loses a contribution", message);
      held = arrived;
    } else if (here == 0 || there == 0) {
      Fail(message.to, "sums nothing", message);
    } else if ((here & there) != 0) {
      Fail(message.to, "sums a contribution twice", message);
    } else {
      held = terms_.Sum(held, arrived);
    }
  }

  void Fail(uint32_t rank, const char* what, const Message& message) {
    if (!error_.empty()) return;
    std::ostringstream text;
    text << "rank " << rank << " of " << family_.size() << ' ' << what << ", in step "
         << message.step;
    error_ = text.str();
  }

  const std::span<const CollectiveSchedule> family_;
  SumTerms& terms_;
  std::vector<Message> messages_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<size_t>> between_;  // by (from, to)
  std::vector<std::vector<std::vector<size_t>>> sends_, receives_;        // by rank, step, number
  std::vector<std::pair<size_t, size_t>> hazards_, overwrites_;  // messages: sent, received
  std::vector<std::vector<size_t>> after_;                       // by event: events that precede it
  std::vector<size_t> sorted_;
  std::vector<std::vector<uint32_t>> held_;
  std::string error_;
};

}  // namespace

ScheduleProof ProveSchedules(std::span<const CollectiveSchedule> family,
                             std::span<const std::vector<WriteHazard>> hazards,
                             const std::function<bool(uint32_t, uint32_t)>& begins_with,
                             SumTerms& terms) {
  TUG_CHECK(hazards.size() == family.size());
  return Proof(family, terms).Run(hazards, begins_with);
}

}  // namespace tug
