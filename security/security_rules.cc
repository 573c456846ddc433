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
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot listen on ", host,
      " (--listen): a job without keys takes whoever can connect, so it listens on loopback "
      "addresses only; set security.mode=TOKEN (or CURVE), make keys with `tug keys FILE`, and "
      "give "
      "every process of the job --keys FILE"));
}

absl::Status CheckKeysFit(SecurityConfig::Mode mode, const JobKeys& keys) {
  if (IsNone(mode) && keys.none()) return absl::OkStatus();
  if (IsNone(mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there are keys (--keys or TUG_KEYS, mode ", ModeName(keys.mode),
        "), and the job's security.mode is NONE: leave them out, or set security.mode=",
        SecurityConfig::Mode_Name(keys.mode)));
  }
  const std::string wanted = SecurityConfig::Mode_Name(mode);
  const std::string make =
      mode == SecurityConfig::TOKEN ? "tug keys FILE" : "tug keys FILE --mode curve";
  if (keys.none()) {
    return absl::FailedPreconditionError(
        absl::StrCat("security.mode is ", wanted, ", and there are no keys: make them with `", make,
                     "`, and give every process of the job --keys FILE (or TUG_KEYS=FILE)"));
  }
  if (keys.mode == mode) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("security.mode is ", wanted, ", and the keys are of mode ", ModeName(keys.mode),
                   ": make others with `", make,
                   "`, or set security.mode=", SecurityConfig::Mode_Name(keys.mode)));
}

}  // namespace tug
