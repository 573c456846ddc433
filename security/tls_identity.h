#ifndef TUG_SECURITY_TLS_IDENTITY_H_
#define TUG_SECURITY_TLS_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"

namespace tug {

// A TLS key (ECDSA, P-256) and a certificate for it that it has signed itself: whoever has both can
// show them, and takes nobody who shows another certificate. In PEM.
struct TlsIdentity {
  std::string certificate;
  std::string private_key;
  friend bool operator==(const TlsIdentity&, const TlsIdentity&) = default;
};

// A new one, for a server of that name. Valid from 2000 to 2100: hosts need not agree about the
// time. Errors: INTERNAL, of OpenSSL.
absl::StatusOr<TlsIdentity> MakeTlsIdentity(const std::string& name);

// Whether both can be read, belong together, and name `name`.
bool IsTlsIdentityOf(const TlsIdentity& identity, const std::string& name);

}  // namespace tug

#endif  // TUG_SECURITY_TLS_IDENTITY_H_
