#include "proto/presence_call.h"

#include "proto/control_credentials.h"

namespace tug {

PresenceCall::PresenceCall(const std::shared_ptr<grpc::Channel>& channel, const JobKeys& keys,
                           uint32_t node_id, uint64_t job)
    : stub_(Presence::NewStub(channel)), thread_([this, keys, node_id, job] {
        AddProof(keys, context_);
        StayRequest request;
        request.set_node_id(node_id);
        request.set_job(job);
        StayReply reply;
        const grpc::Status status = stub_->Stay(&context_, request, &reply);
        broke_off_ = status.error_code() == grpc::StatusCode::UNAVAILABLE;
      }) {}

PresenceCall::~PresenceCall() {
  context_.TryCancel();
  thread_.join();
}

}  // namespace tug
