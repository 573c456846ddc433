// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_ANSWERING_TRANSPORT_H_
#define TUG_TRANSPORT_ANSWERING_TRANSPORT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "transport/transport.h"

namespace tug {

// For tests: a transport that contains its own peer. A test defines Send, which plays the peer and
// calls Answer; the next Poll delivers the answers. Like any transport it is used by one thread at
// a time, except Wake.
class AnsweringTransport : public Transport {
 public:
  absl::Status Connect(PeerId, const std::string&) final { return absl::OkStatus(); }
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) final {
    if (answers_.empty()) {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&woken_), timeout);
      woken_ = false;
    }
    for (Message& answer : std::exchange(answers_, {})) handler(std::move(answer));
  }
  void Wake() final {
    absl::MutexLock lock(&mutex_);
    woken_ = true;
  }
  TransportCounters counters() const final { return {}; }

 protected:
  void Answer(Message answer) { answers_.push_back(std::move(answer)); }

 private:
  std::vector<Message> answers_;
  absl::Mutex mutex_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_ANSWERING_TRANSPORT_H_
