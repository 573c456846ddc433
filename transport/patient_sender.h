// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_PATIENT_SENDER_H_
#define TUG_TRANSPORT_PATIENT_SENDER_H_

#include <cstddef>
#include <deque>
#include <map>

#include "absl/time/time.h"
#include "transport/transport.h"

namespace tug {

// Sends over a transport and keeps messages that do not fit its queue to a peer until they do: a
// dropped message would cost the requester `comm.resend_ms`. Messages to an unreachable peer are
// dropped, and left to that resend. Kept messages are bounded by what peers may have open (credit,
// pulls), so by the state machines that send. Messages to one peer keep their order. Not
// thread-safe: used by the transport's thread.
class PatientSender {
 public:
  // Poll time while messages are kept: no event announces room in a queue.
  static constexpr absl::Duration kRetry = absl::Milliseconds(1);

  // REQUIRES: `transport` outlives the sender.
  explicit PatientSender(Transport& transport) : transport_(transport) {}

  void Send(Outgoing message);
  // Tries to send the kept messages. Call between polls.
  void Retry();
  bool waiting() const { return !waiting_.empty(); }
  // Longest Poll that keeps the kept messages moving.
  absl::Duration PollTime(absl::Duration wanted) const {
    return waiting() && wanted > kRetry ? kRetry : wanted;
  }

 private:
  Transport& transport_;
  std::map<PeerId, std::deque<Outgoing>> waiting_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_PATIENT_SENDER_H_
