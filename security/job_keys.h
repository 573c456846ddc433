#ifndef TUG_SECURITY_JOB_KEYS_H_
#define TUG_SECURITY_JOB_KEYS_H_

// What the members of a job have in common, and strangers have not. One set for all members: who
// has it may do all that any of them may (docs/security.md). All functions are thread-safe.

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "security/tls_identity.h"

namespace tug {

// Of CURVE, in libzmq's text form (Z85, 40 characters each).
struct CurveKeyPair {
  std::string public_key;
  std::string secret_key;
  friend bool operator==(const CurveKeyPair&, const CurveKeyPair&) = default;
};

// Of mode NONE: nothing, which is what a member of a job without keys has. Never to be logged, nor
// to be part of a job file.
struct JobKeys {
  SecurityConfig::Mode mode = SecurityConfig::NONE;
  std::string token;   // 256 random bits, as 64 hexadecimal digits; not of NONE
  CurveKeyPair curve;  // of CURVE only
  TlsIdentity tls;     // the same

  bool none() const { return mode == SecurityConfig::NONE; }
  friend bool operator==(const JobKeys&, const JobKeys&) = default;
};

inline constexpr size_t kTokenDigits = 64;

// New ones, of the system's random source. Errors: INTERNAL. REQUIRES: a mode that has keys.
absl::StatusOr<JobKeys> MakeJobKeys(SecurityConfig::Mode mode);

// Names a set of keys for people, and tells nothing about it: 16 hexadecimal digits.
std::string KeysFingerprint(const JobKeys& keys);
// The same for a token that a stranger has shown.
std::string TokenFingerprint(SecurityConfig::Mode mode, absl::string_view token);

// The name that the job's TLS certificate is for, which clients ask for: the fingerprint and this.
inline constexpr char kTlsNameEnd[] = ".keys.tugboat";
std::string TlsName(const JobKeys& keys);

// "none", "token", "curve"
std::string ModeName(SecurityConfig::Mode mode);

// A code for `what` that only who has the token can make: HMAC-SHA256. Zeros with NONE.
using KeyProof = std::array<std::byte, 32>;
KeyProof ProofOf(const JobKeys& keys, absl::string_view what);

}  // namespace tug

#endif  // TUG_SECURITY_JOB_KEYS_H_
