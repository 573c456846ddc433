// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONTROL_PRESENCE_CALL_H_
#define TUG_CONTROL_PRESENCE_CALL_H_

#include <cstdint>
#include <memory>

#include "security/job_keys.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace tug {

// Keeps a call of the Presence service open during its lifetime, on a thread that sleeps. A failed
// call is not an error: heartbeats report the state. If the call broke off while heartbeats are
// acknowledged, another coordinator has recovered the job: make a new call.
class PresenceCall {
 public:
  PresenceCall(const std::shared_ptr<grpc::Channel>& channel, const JobKeys& keys, uint32_t node_id,
               uint64_t job);
  // Cancels the call.
  ~PresenceCall();
  PresenceCall(const PresenceCall&) = delete;
  PresenceCall& operator=(const PresenceCall&) = delete;

  // Whether the coordinator's end has gone (UNAVAILABLE).
  bool broke_off() const;

 private:
  struct Call;
  const std::unique_ptr<Call> call_;
};

}  // namespace tug

#endif  // TUG_CONTROL_PRESENCE_CALL_H_
