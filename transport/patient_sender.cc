// SPDX-License-Identifier: Apache-2.0
#include "transport/patient_sender.h"

#include <iterator>
#include <utility>

namespace tug {

void PatientSender::Send(Outgoing message) {
  const auto before = waiting_.find(message.to);
  if (before != waiting_.end()) {
    before->second.push_back(std::move(message));
  } else if (absl::IsResourceExhausted(transport_.Send(message))) {
    waiting_[message.to].push_back(std::move(message));
  }
}

void PatientSender::Retry() {
  for (auto peer = waiting_.begin(); peer != waiting_.end();) {
    std::deque<Outgoing>& messages = peer->second;
    while (!messages.empty() && !absl::IsResourceExhausted(transport_.Send(messages.front()))) {
      messages.pop_front();
    }
    peer = messages.empty() ? waiting_.erase(peer) : std::next(peer);
  }
}

}  // namespace tug
