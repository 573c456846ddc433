// SPDX-License-Identifier: Apache-2.0
#include "control/presence_call.h"

#include <atomic>
#include <thread>

#include "control/control_credentials.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "proto/presence.grpc.pb.h"

namespace tug {

struct PresenceCall::Call {
  const std::unique_ptr<Presence::Stub> stub;
  grpc::ClientContext context;
  std::atomic<bool> broke_off = false;
  std::thread thread;
};

PresenceCall::PresenceCall(const std::shared_ptr<grpc::Channel>& channel, const JobKeys& keys,
                           uint32_t node_id, uint64_t job)
    : call_(new Call{.stub = Presence::NewStub(channel)}) {
  call_->thread = std::thread([&call = *call_, keys, node_id, job] {
    AddProof(keys, call.context);
    StayRequest request;
    request.set_node_id(node_id);
    request.set_job(job);
    StayReply reply;
    const grpc::Status status = call.stub->Stay(&call.context, request, &reply);
    call.broke_off = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  });
}

PresenceCall::~PresenceCall() {
  call_->context.TryCancel();
  call_->thread.join();
}

bool PresenceCall::broke_off() const { return call_->broke_off; }

}  // namespace tug
