#ifndef TUG_PROTO_CONTROL_CREDENTIALS_H_
#define TUG_PROTO_CONTROL_CREDENTIALS_H_

// How a call of the control service shows that it is of a member of the job, and of this version:
// by its metadata (the token, and the versions of control protocol and wire format), and, with
// CURVE, by TLS with the job's own certificate on both sides. All functions are thread-safe.

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

// ---- of who calls ----

// TLS with CURVE, else clear text.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const JobKeys& keys);
// The name that the server's certificate is for.
void SetTlsName(const JobKeys& keys, grpc::ChannelArguments& arguments);
// Before the call is made.
void AddProof(const JobKeys& keys, grpc::ClientContext& context);

// ---- of who is called ----

// TLS that only members get through. REQUIRES: keys of CURVE.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentialsOf(const JobKeys& keys);

struct CallRefusal {
  std::string reason;   // for us: "it has no keys"
  absl::Status answer;  // for who calls, with the remedy; tells nothing of the job
};
// Whether a call is not to be answered by a process that has `keys` (maybe of NONE). Compares in
// constant time.
std::optional<CallRefusal> RefusalOf(const grpc::ServerContextBase& context, const JobKeys& keys);

// Of the other side, without its port: "10.0.0.3".
std::string AddressOfPeer(const grpc::ServerContextBase& context);

}  // namespace tug

#endif  // TUG_PROTO_CONTROL_CREDENTIALS_H_
