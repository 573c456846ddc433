// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONTROL_CONTROL_CREDENTIALS_H_
#define TUG_CONTROL_CONTROL_CREDENTIALS_H_

// Credentials of control-service calls: a caller proves that it is a member of the job and has this
// version through metadata (the token, and the versions of control protocol and wire format), and,
// with CURVE, through TLS with the job's own certificate on both sides. All functions are
// thread-safe.

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "security/job_keys.h"

namespace grpc {
class ChannelArguments;
class ChannelCredentials;
class ClientContext;
class ServerContextBase;
class ServerCredentials;
}  // namespace grpc

namespace tug {

// ---- client side ----

// TLS with CURVE, otherwise plain text.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const JobKeys& keys);
// Sets the name in the server's certificate.
void SetTlsName(const JobKeys& keys, grpc::ChannelArguments& arguments);
// Adds token and versions to a call. Call before the call starts.
void AddProof(const JobKeys& keys, grpc::ClientContext& context);

// ---- server side ----

// TLS that accepts members only. REQUIRES: keys of CURVE.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentialsOf(const JobKeys& keys);

struct CallRefusal {
  std::string reason;   // for our log: "it has no keys"
  absl::Status answer;  // for the caller, with the remedy; reveals nothing about the job
};
// Reason to refuse a call to a process that has `keys` (possibly NONE); nothing: accept. Compares
// in constant time.
std::optional<CallRefusal> RefusalOf(const grpc::ServerContextBase& context, const JobKeys& keys);

// Address of the peer without its port: "10.0.0.3".
std::string AddressOfPeer(const grpc::ServerContextBase& context);

}  // namespace tug

#endif  // TUG_CONTROL_CONTROL_CREDENTIALS_H_
