// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/presence_service.h"

#include <utility>

namespace tug {

// Deletes itself in OnDone, which gRPC calls last, after the call was finished.
class PresenceService::Call final : public grpc::ServerUnaryReactor {
 public:
  Call(PresenceService& service, StayRequest request)
      : service_(service), request_(std::move(request)) {}

  void OnCancel() override {
    if (!service_.Take(this)) return;
    service_.on_gone_(request_);
    Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  PresenceService& service_;
  const StayRequest request_;
};

bool PresenceService::Take(Call* call) {
  absl::MutexLock lock(&mutex_);
  return open_.erase(call) > 0;
}

void PresenceService::Close() {
  std::set<Call*> open;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    open = std::exchange(open_, {});
  }
  for (Call* call : open) call->Finish(grpc::Status::OK);
}

grpc::ServerUnaryReactor* PresenceService::Stay(grpc::CallbackServerContext* context,
                                                const StayRequest* request, StayReply*) {
  auto* call = new Call(*this, *request);
  const grpc::Status admitted = admit_(*context);
  if (!admitted.ok()) {
    call->Finish(admitted);
    return call;
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) {
      open_.insert(call);
      return call;
    }
  }
  call->Finish(grpc::Status::OK);
  return call;
}

}  // namespace tug
