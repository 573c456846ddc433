// SPDX-License-Identifier: Apache-2.0
#include "control/control_credentials.h"

#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/net/same_secret.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/wire.h"

namespace tug {
namespace {

constexpr char kToken[] = "tug-token";
constexpr char kControl[] = "tug-control";  // kControlVersion
constexpr char kWire[] = "tug-wire";        // kWireVersion

std::optional<std::string> MetadataOf(const grpc::ServerContextBase& context, const char* name) {
  const auto found = context.client_metadata().find(name);
  if (found == context.client_metadata().end()) return std::nullopt;
  return std::string(found->second.data(), found->second.size());
}

// "it speaks wire format 3, the coordinator 4" if the call names another version than ours.
std::optional<std::string> OtherVersion(const grpc::ServerContextBase& context) {
  for (const auto& [name, what, ours] : {std::tuple{kControl, "control protocol", kControlVersion},
                                         {kWire, "wire format", uint32_t{kWireVersion}}}) {
    const std::optional<std::string> said = MetadataOf(context, name);
    uint32_t version = 0;
    if (!said.has_value() || (absl::SimpleAtoi(*said, &version) && version == ours)) continue;
    // Report the parsed number: do not repeat a stranger's text.
    return absl::StrCat("it speaks ", what, " ", version, ", the coordinator ", ours);
  }
  return std::nullopt;
}

std::string Versions() {
  return absl::StrCat("; the coordinator speaks control protocol ", kControlVersion,
                      ", wire format ", kWireVersion);
}

CallRefusal Refuse(const std::string& reason, const std::string& remedy) {
  return {reason, absl::UnauthenticatedError(absl::StrCat(reason, ": ", remedy, Versions()))};
}

// For a job with keys.
std::optional<CallRefusal> RefusalByKeys(const grpc::ServerContextBase& context,
                                         const JobKeys& keys) {
  const std::string mode = ModeName(keys.mode);
  const std::optional<std::string> token = MetadataOf(context, kToken);
  const bool encrypted = context.auth_context()->IsPeerAuthenticated();
  const bool wants_encryption = keys.mode == SecurityConfig::CURVE;
  if (!token.has_value()) {
    return Refuse(
        "it has no keys",
        absl::StrCat("this job requires its keys (security.mode ",
                     SecurityConfig::Mode_Name(keys.mode),
                     "); pass --keys FILE or TUG_KEYS=FILE with a copy of the coordinator's keys"));
  }
  if (encrypted != wants_encryption) {
    return Refuse(absl::StrCat("its keys are for another mode, the job's for mode ", mode),
                  "pass --keys FILE with a copy of the coordinator's keys");
  }
  if (SameSecret(*token, keys.token)) return std::nullopt;
  return Refuse(absl::StrCat("its keys belong to another job (fingerprint ",
                             TokenFingerprint(keys.mode, *token), ")"),
                "pass --keys FILE with a copy of the coordinator's keys; compare `tug keys --show "
                "FILE` on both hosts");
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const JobKeys& keys) {
  if (keys.mode != SecurityConfig::CURVE) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = keys.tls.certificate;
  options.pem_cert_chain = keys.tls.certificate;
  options.pem_private_key = keys.tls.private_key;
  return grpc::SslCredentials(options);
}

void SetTlsName(const JobKeys& keys, grpc::ChannelArguments& arguments) {
  if (keys.mode == SecurityConfig::CURVE) arguments.SetSslTargetNameOverride(TlsName(keys));
}

void AddProof(const JobKeys& keys, grpc::ClientContext& context) {
  context.AddMetadata(kControl, absl::StrCat(kControlVersion));
  context.AddMetadata(kWire, absl::StrCat(kWireVersion));
  if (!keys.none()) context.AddMetadata(kToken, keys.token);
}

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentialsOf(const JobKeys& keys) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = keys.tls.certificate;
  options.pem_key_cert_pairs.push_back({keys.tls.private_key, keys.tls.certificate});
  return grpc::SslServerCredentials(options);
}

std::optional<CallRefusal> RefusalOf(const grpc::ServerContextBase& context, const JobKeys& keys) {
  std::optional<CallRefusal> refusal;
  if (!keys.none()) {
    refusal = RefusalByKeys(context, keys);
  } else if (MetadataOf(context, kToken).has_value()) {
    refusal = Refuse("it has keys, but this job has none (security.mode NONE)",
                     "omit --keys and TUG_KEYS, or check that the address is that of your job");
  }
  const std::optional<std::string> version = OtherVersion(context);
  if (!version.has_value()) return refusal;
  if (refusal.has_value()) {
    absl::StrAppend(&refusal->reason, "; ", *version);
    return refusal;
  }
  return CallRefusal{*version, absl::FailedPreconditionError(absl::StrCat(
                                   *version, ": run the same version of tug everywhere"))};
}

std::string AddressOfPeer(const grpc::ServerContextBase& context) {
  // "ipv4:10.0.0.3:4711", "ipv6:%5B::1%5D:4711"
  const std::string uri = context.peer();
  absl::string_view peer = uri;
  if (!absl::ConsumePrefix(&peer, "ipv4:") && !absl::ConsumePrefix(&peer, "ipv6:")) return uri;
  return absl::StrReplaceAll(peer.substr(0, peer.rfind(':')), {{"%5B", ""}, {"%5D", ""}});
}

}  // namespace tug
