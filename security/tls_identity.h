// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SECURITY_TLS_IDENTITY_H_
#define TUG_SECURITY_TLS_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"

namespace tug {

// A TLS key (ECDSA, P-256) and its self-signed certificate, in PEM. Peers that share it present
// this certificate and accept no other.
struct TlsIdentity {
  std::string certificate;
  std::string private_key;
  friend bool operator==(const TlsIdentity&, const TlsIdentity&) = default;
};

// Generates an identity for a server of that name. Valid from 2000 to 2100, so that hosts' clocks
// need not agree. Errors: INTERNAL, from OpenSSL.
absl::StatusOr<TlsIdentity> MakeTlsIdentity(const std::string& name);

// Whether both can be parsed, belong together, and the certificate is for `name`.
bool IsTlsIdentityOf(const TlsIdentity& identity, const std::string& name);

}  // namespace tug

#endif  // TUG_SECURITY_TLS_IDENTITY_H_
