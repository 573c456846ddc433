// SPDX-License-Identifier: Apache-2.0
#include "security/job_keys.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr size_t kCurveText = 41;  // including the terminating zero
constexpr size_t kFingerprintDigits = 16;

KeyProof Hmac(absl::string_view key, absl::string_view what) {
  KeyProof code{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(what.data()), what.size(),
       reinterpret_cast<unsigned char*>(code.data()), &size);
  return code;
}

absl::StatusOr<std::string> RandomToken() {
  char bytes[kTokenBytes];
  if (getentropy(bytes, sizeof(bytes)) != 0) {
    return absl::InternalError(
        absl::StrCat("cannot get random bytes from the system: ", std::strerror(errno)));
  }
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes)));
}

}  // namespace

absl::StatusOr<JobKeys> MakeJobKeys(SecurityConfig::Mode mode) {
  JobKeys keys;
  keys.mode = mode;
  ASSIGN_OR_RETURN(keys.token, RandomToken());
  if (mode != SecurityConfig::CURVE) return keys;
  char public_key[kCurveText];
  char secret_key[kCurveText];
  if (zmq_curve_keypair(public_key, secret_key) != 0) {
    return absl::InternalError(
        absl::StrCat("cannot make a CURVE key: ", zmq_strerror(zmq_errno())));
  }
  keys.curve = {public_key, secret_key};
  ASSIGN_OR_RETURN(keys.tls, MakeTlsIdentity(TlsName(keys)));
  return keys;
}

std::string TokenFingerprint(SecurityConfig::Mode mode, absl::string_view token) {
  const KeyProof code = Hmac(token, absl::StrCat("tug keys ", ModeName(mode)));
  return absl::BytesToHexString(
             absl::string_view(reinterpret_cast<const char*>(code.data()), code.size()))
      .substr(0, kFingerprintDigits);
}

std::string KeysFingerprint(const JobKeys& keys) { return TokenFingerprint(keys.mode, keys.token); }

std::string TlsName(const JobKeys& keys) {
  return absl::StrCat(KeysFingerprint(keys), kTlsNameEnd);
}

std::string ModeName(SecurityConfig::Mode mode) {
  switch (mode) {
    case SecurityConfig::TOKEN:
      return "token";
    case SecurityConfig::CURVE:
      return "curve";
    default:
      return "none";
  }
}

KeyProof ProofOf(const JobKeys& keys, absl::string_view what) {
  return keys.none() ? KeyProof{} : Hmac(keys.token, what);
}

}  // namespace tug
