#ifndef TUG_TRANSPORT_PATIENT_SENDER_H_
#define TUG_TRANSPORT_PATIENT_SENDER_H_

#include <cstddef>
#include <deque>
#include <map>

#include "absl/time/time.h"
#include "transport/transport.h"

namespace tug {

// Sends over a transport, and keeps what does not fit its queue to a peer until it does: a message
// that is given up costs its asker `comm.resend_ms`. A peer that is not reachable is left to that.
// What waits is bounded by what peers may have open (credit, pulls), so by the state machines that
// send. Messages to one peer keep their order. Not thread-safe: the transport's user's.
class PatientSender {
 public:
  // How long to Poll while messages wait here: no event says that a queue has room again.
  static constexpr absl::Duration kRetry = absl::Milliseconds(1);

  // REQUIRES: `transport` outlives the sender.
  explicit PatientSender(Transport& transport) : transport_(transport) {}

  void Send(Outgoing message);
  // Tries again what waits. To be called between polls.
  void Retry();
  bool waiting() const { return !waiting_.empty(); }
  // The longest Poll that keeps what waits moving.
  absl::Duration PollTime(absl::Duration wanted) const {
    return waiting() && wanted > kRetry ? kRetry : wanted;
  }

 private:
  Transport& transport_;
  std::map<PeerId, std::deque<Outgoing>> waiting_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_PATIENT_SENDER_H_
