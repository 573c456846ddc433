#include "collective/symbolic_run.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <sstream>
#include <utility>

#include "base/check.h"

namespace tug {
namespace {

bool Overlap(const Transfer& a, const Transfer& b) { return a.begin < b.end && b.begin < a.end; }

// A send or a receive of one rank, and how far it is.
struct Event {
  Transfer transfer;
  uint32_t step = 0;
  uint32_t number = 0;              // among the sends, or the receives, of the step
  std::vector<size_t> after;        // receives of the rank that must be written before
  std::vector<size_t> after_sends;  // of a receive: sends of the rank that must be posted before
  std::vector<size_t> hazards;      // of a receive: sends of the rank that must be read before
  bool posted = false;              // a send
  bool read = false;                // a send by its peer; a receive
  bool written = false;             // a receive
  std::vector<uint32_t> aside;      // of a receive that was read to the side
};

struct Rank {
  std::vector<Event> sends, receives;         // in order of steps and transfers
  std::vector<std::vector<size_t>> to, from;  // by peer: numbers of these
  std::vector<size_t> posted_to, read_from;   // by peer: how many of them are posted, read
  std::vector<size_t> aside;                  // receives that are read and not written
  size_t left = 0;                            // sends to post and receives to write
};

class Run {
 public:
  Run(std::span<const Schedule> family, std::span<const std::vector<WriteHazard>> hazards,
      uint32_t seed, SumTerms& terms)
      : family_(family), random_(seed), terms_(terms), ranks_(family.size()) {
    for (uint32_t rank = 0; rank < family.size(); ++rank) Prepare(rank, hazards[rank]);
  }

  SymbolicOutcome Go(const std::function<bool(uint32_t, uint32_t)>& begins_with) {
    for (uint32_t rank = 0; rank < family_.size(); ++rank) {
      std::vector<uint32_t>& held = outcome_.held.emplace_back(family_[rank].parts);
      for (uint32_t part = 0; part < held.size(); ++part) {
        if (begins_with(rank, part)) held[part] = terms_.Leaf(rank, part);
      }
    }
    std::vector<uint32_t> order(family_.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    const bool in_turn = random_() % 2 == 0;
    blocked_.assign(family_.size(), false);
    while (outcome_.error.empty()) {
      if (!in_turn) std::shuffle(order.begin(), order.end(), random_);
      const auto next =
          std::find_if(order.begin(), order.end(), [&](uint32_t rank) { return !blocked_[rank]; });
      if (next == order.end()) break;
      Advance(*next);
    }
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].left > 0) Fail(rank, "deadlock", ranks_[rank].left);
    }
    return std::move(outcome_);
  }

 private:
  void Prepare(uint32_t rank, const std::vector<WriteHazard>& hazards) {
    Rank& of = ranks_[rank];
    of.to.resize(family_.size());
    of.from.resize(family_.size());
    of.posted_to.assign(family_.size(), 0);
    of.read_from.assign(family_.size(), 0);
    for (uint32_t step = 0; step < family_[rank].steps.size(); ++step) {
      const Step& transfers = family_[rank].steps[step];
      const size_t written_before = of.receives.size();
      for (uint32_t i = 0; i < transfers.sends.size(); ++i) {
        Event send{.transfer = transfers.sends[i], .step = step, .number = i};
        AddWritesBefore(of, written_before, send);
        of.to[send.transfer.peer].push_back(of.sends.size());
        of.sends.push_back(std::move(send));
      }
      for (uint32_t i = 0; i < transfers.receives.size(); ++i) {
        Event receive{.transfer = transfers.receives[i], .step = step, .number = i};
        AddWritesBefore(of, written_before, receive);
        for (size_t send = 0; send < of.sends.size(); ++send) {
          if (Overlap(of.sends[send].transfer, receive.transfer))
            receive.after_sends.push_back(send);
        }
        of.from[receive.transfer.peer].push_back(of.receives.size());
        of.receives.push_back(std::move(receive));
      }
    }
    of.left = of.sends.size() + of.receives.size();
    for (const WriteHazard& hazard : hazards) {
      Find(of.receives, hazard.step, hazard.receive)
          .hazards.push_back(static_cast<size_t>(&Find(of.sends, hazard.send_step, hazard.send) -
                                                 of.sends.data()));
    }
  }

  static Event& Find(std::vector<Event>& events, uint32_t step, uint32_t number) {
    const auto found = std::find_if(events.begin(), events.end(), [&](const Event& event) {
      return event.step == step && event.number == number;
    });
    TUG_CHECK(found != events.end());
    return *found;
  }

  static void AddWritesBefore(const Rank& of, size_t count, Event& event) {
    const bool no_parts = event.transfer.begin == event.transfer.end;
    for (size_t i = 0; i < count; ++i) {
      if (no_parts || Overlap(of.receives[i].transfer, event.transfer)) event.after.push_back(i);
    }
  }

  // Does one of the things that a rank can do, or marks it as blocked.
  void Advance(uint32_t rank) {
    Rank& of = ranks_[rank];
    std::vector<std::function<void()>> can;
    for (uint32_t peer = 0; peer < ranks_.size(); ++peer) {
      if (of.posted_to[peer] < of.to[peer].size()) {
        Event& send = of.sends[of.to[peer][of.posted_to[peer]]];
        if (Written(of, send)) can.push_back([&, peer] { Post(rank, peer, send); });
      }
      if (of.read_from[peer] < ranks_[peer].posted_to[rank]) {
        const size_t number = of.from[peer][of.read_from[peer]];
        const Event& receive = of.receives[number];
        if (!receive.hazards.empty() || MayWrite(of, receive)) {
          can.push_back([&, peer, number] { Read(rank, peer, number); });
        }
      }
    }
    for (size_t i = 0; i < of.aside.size(); ++i) {
      if (!MayWrite(of, of.receives[of.aside[i]])) continue;
      can.push_back([&, i] {
        Event& receive = of.receives[of.aside[i]];
        of.aside.erase(of.aside.begin() + static_cast<ptrdiff_t>(i));
        Write(rank, receive);
      });
    }
    if (can.empty()) {
      blocked_[rank] = true;
    } else {
      can[random_() % can.size()]();
    }
  }

  static bool Written(const Rank& of, const Event& event) {
    return std::all_of(event.after.begin(), event.after.end(),
                       [&](size_t i) { return of.receives[i].written; });
  }
  static bool MayWrite(const Rank& of, const Event& receive) {
    return Written(of, receive) &&
           std::all_of(receive.after_sends.begin(), receive.after_sends.end(),
                       [&](size_t i) { return of.sends[i].posted; }) &&
           std::all_of(receive.hazards.begin(), receive.hazards.end(),
                       [&](size_t i) { return of.sends[i].read; });
  }

  void Post(uint32_t rank, uint32_t peer, Event& send) {
    send.posted = true;
    ++ranks_[rank].posted_to[peer];
    --ranks_[rank].left;
    for (uint32_t part = send.transfer.begin; part < send.transfer.end; ++part) {
      if (outcome_.held[rank][part] == SumTerms::kNothing) {
        Fail(rank, "sends a part with nothing in it", part);
      }
    }
    blocked_[peer] = false;
  }

  void Read(uint32_t rank, uint32_t peer, size_t number) {
    Rank& of = ranks_[rank];
    Event& receive = of.receives[number];
    Rank& from = ranks_[peer];
    Event& send = from.sends[from.to[rank][of.read_from[peer]++]];
    for (uint32_t part = send.transfer.begin; part < send.transfer.end; ++part) {
      receive.aside.push_back(outcome_.held[peer][part]);
    }
    send.read = true;
    receive.read = true;
    blocked_[peer] = false;
    if (receive.hazards.empty()) {
      Write(rank, receive);
    } else {
      of.aside.push_back(number);
    }
  }

  void Write(uint32_t rank, Event& receive) {
    Rank& of = ranks_[rank];
    for (size_t send : receive.after_sends) {
      if (!of.sends[send].read) {
        Fail(rank, "writes what a peer has yet to read, in step", receive.step);
      }
    }
    for (uint32_t i = 0; i < receive.aside.size(); ++i) {
      WritePart(rank, receive, receive.transfer.begin + i, receive.aside[i]);
    }
    receive.written = true;
    --of.left;
  }

  void WritePart(uint32_t rank, const Event& receive, uint32_t part, uint32_t arrived) {
    uint32_t& held = outcome_.held[rank][part];
    if (!receive.transfer.reduces) {
      if (!family_[rank].transposes && (terms_.ranks(held) & ~terms_.ranks(arrived)) != 0) {
        Fail(rank, "loses a contribution to part", part);
      }
      held = arrived;
      return;
    }
    if (held == SumTerms::kNothing || arrived == SumTerms::kNothing) {
      Fail(rank, "sums a part with nothing in it", part);
    } else if ((terms_.ranks(held) & terms_.ranks(arrived)) != 0) {
      Fail(rank, "sums a contribution twice, to part", part);
    } else {
      held = terms_.Sum(held, arrived);
    }
  }

  void Fail(uint32_t rank, const char* what, uint64_t number) {
    if (!outcome_.error.empty()) return;
    std::ostringstream message;
    message << "rank " << rank << " of " << family_.size() << ": " << what << ' ' << number;
    outcome_.error = message.str();
  }

  const std::span<const Schedule> family_;
  std::mt19937 random_;
  SumTerms& terms_;
  std::vector<Rank> ranks_;
  std::vector<bool> blocked_;  // nothing to do before a peer posts or reads
  SymbolicOutcome outcome_;
};

// What is wrong with one rank's schedule by itself.
std::string Malformed(std::span<const Schedule> family, uint32_t rank) {
  const Schedule& schedule = family[rank];
  if (schedule.parts != family[0].parts) return "other parts than rank 0";
  if (schedule.transposes != family[0].transposes) return "transposes, or rank 0 does";
  const auto wrong = [&](const Transfer& transfer) {
    return transfer.peer == rank || transfer.peer >= family.size() ||
           transfer.begin > transfer.end || transfer.end > schedule.parts;
  };
  for (const Step& step : schedule.steps) {
    for (const Transfer& send : step.sends) {
      if (wrong(send) || send.reduces) return "a send that cannot be";
    }
    for (size_t i = 0; i < step.receives.size(); ++i) {
      if (wrong(step.receives[i])) return "a receive that cannot be";
      for (size_t j = 0; j < i; ++j) {
        if (Overlap(step.receives[i], step.receives[j])) return "receives that overlap in a step";
      }
    }
  }
  return "";
}

// What a rank sends to a peer, or receives from it: steps and parts, as the receiver has them.
std::vector<std::pair<uint32_t, Transfer>> Between(const Schedule& schedule, uint32_t peer,
                                                   bool sends) {
  std::vector<std::pair<uint32_t, Transfer>> between;
  for (uint32_t step = 0; step < schedule.steps.size(); ++step) {
    for (Transfer transfer : sends ? schedule.steps[step].sends : schedule.steps[step].receives) {
      if (transfer.peer != peer) continue;
      transfer.peer = 0;
      transfer.reduces = false;
      between.emplace_back(step, transfer);
    }
  }
  return between;
}

}  // namespace

std::string Mismatch(std::span<const Schedule> family) {
  for (uint32_t rank = 0; rank < family.size(); ++rank) {
    std::string wrong = Malformed(family, rank);
    if (!wrong.empty()) return "rank " + std::to_string(rank) + ": " + wrong;
    for (uint32_t peer = 0; peer < family.size(); ++peer) {
      auto sent = Between(family[rank], peer, true);
      const auto received = Between(family[peer], rank, false);
      if (family[rank].transposes) {
        for (auto& [step, transfer] : sent) {
          if (transfer.begin != peer || transfer.end != peer + 1) return "a part for another rank";
          transfer.begin = rank;
          transfer.end = rank + 1;
        }
      }
      if (sent != received) {
        return "what rank " + std::to_string(rank) + " sends is not what rank " +
               std::to_string(peer) + " receives";
      }
    }
  }
  return "";
}

std::vector<std::vector<WriteHazard>> AllWriteHazards(std::span<const Schedule> family) {
  std::vector<std::vector<WriteHazard>> all;
  for (uint32_t rank = 0; rank < family.size(); ++rank) {
    all.push_back(WriteHazards(family, rank));
  }
  return all;
}

SymbolicOutcome RunSymbolically(std::span<const Schedule> family,
                                std::span<const std::vector<WriteHazard>> hazards,
                                const std::function<bool(uint32_t, uint32_t)>& begins_with,
                                uint32_t seed, SumTerms& terms) {
  std::string mismatch = Mismatch(family);
  if (!mismatch.empty()) return {std::move(mismatch), {}};
  TUG_CHECK(hazards.size() == family.size());
  return Run(family, hazards, seed, terms).Go(begins_with);
}

}  // namespace tug
