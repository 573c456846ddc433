// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SECURITY_JOB_KEYS_H_
#define TUG_SECURITY_JOB_KEYS_H_

// Keys that the members of a job share. All members have the same set: a holder may do whatever any
// member may (docs/security.md). All functions are thread-safe.

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "security/tls_identity.h"

namespace tug {

// CURVE key pair in libzmq's text form (Z85, 40 characters each).
struct CurveKeyPair {
  std::string public_key;
  std::string secret_key;
  friend bool operator==(const CurveKeyPair&, const CurveKeyPair&) = default;
};

// Keys of a member. With mode NONE all are empty: the job has no keys. Never log them or put them
// into a job file.
struct JobKeys {
  SecurityConfig::Mode mode = SecurityConfig::NONE;
  std::string token;   // 256 random bits, as 64 hexadecimal digits; empty with NONE
  CurveKeyPair curve;  // mode CURVE only
  TlsIdentity tls;     // mode CURVE only

  bool none() const { return mode == SecurityConfig::NONE; }
  friend bool operator==(const JobKeys&, const JobKeys&) = default;
};

inline constexpr size_t kTokenDigits = 64;

// Generates random keys. Errors: INTERNAL. REQUIRES: a mode that has keys.
absl::StatusOr<JobKeys> MakeJobKeys(SecurityConfig::Mode mode);

// Identifies a set of keys to the user without revealing it: 16 hexadecimal digits.
std::string KeysFingerprint(const JobKeys& keys);
// Fingerprint for a token that an unauthenticated peer presented.
std::string TokenFingerprint(SecurityConfig::Mode mode, absl::string_view token);

// Suffix of TlsName: the name in the job's TLS certificate, which clients request, is the
// fingerprint of the keys followed by this.
inline constexpr char kTlsNameEnd[] = ".keys.tugboat";
std::string TlsName(const JobKeys& keys);

// "none", "token", "curve"
std::string ModeName(SecurityConfig::Mode mode);

// HMAC-SHA256 of `what`, which only a holder of the token can compute. Zeros with NONE.
using KeyProof = std::array<std::byte, 32>;
KeyProof ProofOf(const JobKeys& keys, absl::string_view what);

}  // namespace tug

#endif  // TUG_SECURITY_JOB_KEYS_H_
