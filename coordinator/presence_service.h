#ifndef TUG_COORDINATOR_PRESENCE_SERVICE_H_
#define TUG_COORDINATOR_PRESENCE_SERVICE_H_

#include <functional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/presence.grpc.pb.h"

namespace tug {

// The coordinator's side of the calls that nodes keep open while they live. A call that waits holds
// no thread. Thread-safe; outlives the gRPC server that serves it.
class PresenceService final : public Presence::CallbackService {
 public:
  // `admit`: not OK: the call is answered so at once. `on_gone`: the call of this request broke
  // off. Both on threads of gRPC's.
  PresenceService(std::function<grpc::Status(const grpc::ServerContextBase&)> admit,
                  std::function<void(const StayRequest&)> on_gone)
      : admit_(std::move(admit)), on_gone_(std::move(on_gone)) {}

  // Answers all calls, now and later, so that the server need not wait for them.
  void Close();

  grpc::ServerUnaryReactor* Stay(grpc::CallbackServerContext* context, const StayRequest* request,
                                 StayReply* reply) override;

 private:
  class Call;

  // True the first time: who has it answers the call.
  bool Take(Call* call);

  const std::function<grpc::Status(const grpc::ServerContextBase&)> admit_;
  const std::function<void(const StayRequest&)> on_gone_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Call*> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PRESENCE_SERVICE_H_
