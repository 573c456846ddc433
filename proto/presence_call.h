#ifndef TUG_PROTO_PRESENCE_CALL_H_
#define TUG_PROTO_PRESENCE_CALL_H_

#include <cstdint>
#include <memory>

#include "security/job_keys.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace tug {

// Keeps a call of the Presence service open while it lives, on a thread of its own, which sleeps.
// That the call cannot be made, or ends, is none of the node's business: heartbeats tell. Where it
// broke off, and they are answered, another coordinator has taken the job up: it needs a new call.
class PresenceCall {
 public:
  PresenceCall(const std::shared_ptr<grpc::Channel>& channel, const JobKeys& keys, uint32_t node_id,
               uint64_t job);
  // Breaks it off.
  ~PresenceCall();
  PresenceCall(const PresenceCall&) = delete;
  PresenceCall& operator=(const PresenceCall&) = delete;

  // The coordinator's end is gone.
  bool broke_off() const;

 private:
  struct Call;
  const std::unique_ptr<Call> call_;
};

}  // namespace tug

#endif  // TUG_PROTO_PRESENCE_CALL_H_
