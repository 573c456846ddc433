// SPDX-License-Identifier: Apache-2.0
#include "collective/port_order.h"

#include <algorithm>
#include <map>
#include <set>

namespace tug {
namespace {

// Messages of one step to a rank over the network, or from it.
struct WithPeer {
  std::vector<uint32_t> messages;
  uint64_t elements = 0;
};
using StepPeers = std::map<uint32_t, WithPeer>;

// Groups messages by step. `messages` are in step order.
std::vector<StepPeers> PeersOfSteps(uint32_t steps, const std::vector<PlannedMessage>& messages,
                                    const std::vector<bool>& over_network) {
  std::vector<StepPeers> peers(steps);
  for (uint32_t m = 0; m < messages.size(); ++m) {
    if (!over_network[messages[m].peer]) continue;
    WithPeer& with = peers[messages[m].step][messages[m].peer];
    with.messages.push_back(m);
    with.elements += messages[m].elements();
  }
  return peers;
}

bool HasSamePeers(const StepPeers& a, const StepPeers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

// Visits all steps, from first to last.
class PortOrderer {
 public:
  PortOrderer(uint32_t steps, const std::vector<PlannedMessage>& sends,
              const std::vector<PlannedMessage>& receives, const std::vector<bool>& over_network,
              uint64_t word_elements)
      : sends_(sends),
        receives_(receives),
        sent_(PeersOfSteps(steps, sends, over_network)),
        received_(PeersOfSteps(steps, receives, over_network)),
        word_elements_(word_elements) {
    for (const StepPeers& step : received_) {
      for (const auto& [peer, with] : step) senders_.insert(peer);
    }
  }

  PortOrder Order() {
    static const StepPeers kNobody;
    for (uint32_t step = 0; step < sent_.size(); ++step) {
      const StepPeers& sent_before = step == 0 ? kNobody : sent_[step - 1];
      const StepPeers& received_before = step == 0 ? kNobody : received_[step - 1];
      AfterReceives(sent_[step]);
      AwaitReceived(sent_before, sent_[step]);
      AwaitClear(sent_before, sent_[step]);
      ReportReceived(received_before, received_[step]);
      ReportClear(received_before, received_[step]);
      before_ = last_;
      for (const auto& [peer, with] : received_[step]) last_[peer] = with.messages.back();
      if (!sent_[step].empty() || !received_[step].empty()) receivers_ = &sent_[step];
    }
    return std::move(order_);
  }

 private:
  // Whether one step has many elements with a rank, and the other step none.
  bool IsMuchOfOneStep(const StepPeers::value_type& entry, const StepPeers& other) const {
    return entry.second.elements >= word_elements_ && other.count(entry.first) == 0;
  }
  bool IsRing(const StepPeers& sent) const {
    return std::none_of(sent.begin(), sent.end(),
                        [&](const auto& entry) { return senders_.count(entry.first) > 0; });
  }

  void AfterReceives(const StepPeers& sent) {
    const bool as_before = receivers_ != nullptr && HasSamePeers(sent, *receivers_);
    if (as_before && IsRing(sent)) return;
    for (const auto& [from, receive] : as_before ? before_ : last_) {
      for (const auto& [peer, with] : sent) {
        for (const uint32_t send : with.messages) {
          order_.sends_after_receives.emplace_back(receive, send);
        }
      }
    }
  }

  void AwaitReceived(const StepPeers& before, const StepPeers& sent) {
    for (const auto& entry : before) {
      if (IsMuchOfOneStep(entry, sent)) left_.push_back(WordAbout(sends_, entry, true));
    }
    if (sent.empty()) return;
    for (const PortWord& word : std::exchange(left_, {})) {
      order_.awaited.push_back(word);
      for (const auto& [peer, with] : sent) HoldSends(with);
    }
  }

  void AwaitClear(const StepPeers& before, const StepPeers& sent) {
    for (const auto& entry : sent) {
      if (!IsMuchOfOneStep(entry, before)) continue;
      order_.awaited.push_back(WordAbout(sends_, entry, false));
      HoldSends(entry.second);
    }
  }

  // Makes the sends wait for the last awaited word.
  void HoldSends(const WithPeer& with) {
    const auto word = static_cast<uint32_t>(order_.awaited.size() - 1);
    for (const uint32_t send : with.messages) order_.sends_after_words.emplace_back(word, send);
  }

  void ReportReceived(const StepPeers& before, const StepPeers& received) {
    for (const auto& entry : before) {
      if (!IsMuchOfOneStep(entry, received)) continue;
      for (const uint32_t receive : entry.second.messages) DeferUntilReceive(receive);
      order_.said.push_back(WordAbout(receives_, entry, true));
    }
  }

  void ReportClear(const StepPeers& before, const StepPeers& received) {
    for (const auto& entry : received) {
      if (!IsMuchOfOneStep(entry, before)) continue;
      for (const auto& [from, receive] : last_) DeferUntilReceive(receive);
      order_.said.push_back(WordAbout(receives_, entry, false));
    }
  }

  // Makes the next word to be sent wait for the receive.
  void DeferUntilReceive(uint32_t receive) {
    order_.said_after_receives.emplace_back(receive, static_cast<uint32_t>(order_.said.size()));
  }

  static PortWord WordAbout(const std::vector<PlannedMessage>& messages,
                            const StepPeers::value_type& entry, bool received) {
    return {entry.first, messages[entry.second.messages.front()].number, received};
  }

  const std::vector<PlannedMessage>& sends_;
  const std::vector<PlannedMessage>& receives_;
  const std::vector<StepPeers> sent_;      // by step
  const std::vector<StepPeers> received_;  // by step
  const uint64_t word_elements_;
  std::set<uint32_t> senders_;            // in all steps
  const StepPeers* receivers_ = nullptr;  // of the last step with network transfers
  std::map<uint32_t, uint32_t> last_;     // by peer: last receive in earlier steps
  std::map<uint32_t, uint32_t> before_;   // last_, one step earlier
  std::vector<PortWord> left_;            // awaited by the next step that sends
  PortOrder order_;
};

}  // namespace

PortOrder OrderPorts(uint32_t steps, const std::vector<PlannedMessage>& sends,
                     const std::vector<PlannedMessage>& receives,
                     const std::vector<bool>& over_network, uint64_t word_elements) {
  if (over_network.size() <= 2) return {};
  return PortOrderer(steps, sends, receives, over_network, word_elements).Order();
}

}  // namespace tug
