// SPDX-License-Identifier: Apache-2.0
#include "security/security_rules.h"

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

bool IsNone(SecurityConfig::Mode mode) {
  return mode == SecurityConfig::NONE || mode == SecurityConfig::MODE_DEFAULT;
}

}  // namespace

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host == "lo" ||
         (host.rfind("127.", 0) == 0 && host.find_first_not_of("0123456789.") == std::string::npos);
}

absl::Status CheckMayListen(SecurityConfig::Mode mode, const std::string& host) {
  if (!IsNone(mode) || IsLoopback(host)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot listen on ", host,
                   " (--listen): without keys any process could join the job, so only loopback "
                   "addresses are allowed; set security.mode=TOKEN (or CURVE), create keys with "
                   "`tug keys FILE`, and pass --keys FILE to every process of the job"));
}

absl::Status CheckKeysFit(SecurityConfig::Mode mode, const JobKeys& keys) {
  if (IsNone(mode) && keys.none()) return absl::OkStatus();
  if (IsNone(mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("keys are given (--keys or TUG_KEYS, mode ", ModeName(keys.mode),
                     "), but the job's security.mode is NONE: omit them, or set security.mode=",
                     SecurityConfig::Mode_Name(keys.mode)));
  }
  const std::string wanted = SecurityConfig::Mode_Name(mode);
  const std::string make =
      mode == SecurityConfig::TOKEN ? "tug keys FILE" : "tug keys FILE --mode curve";
  if (keys.none()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "security.mode is ", wanted, ", but no keys are given: create them with `", make,
        "`, and pass --keys FILE (or TUG_KEYS=FILE) to every process of the job"));
  }
  if (keys.mode == mode) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("security.mode is ", wanted, ", but the keys have mode ", ModeName(keys.mode),
                   ": create others with `", make,
                   "`, or set security.mode=", SecurityConfig::Mode_Name(keys.mode)));
}

}  // namespace tug
