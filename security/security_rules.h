// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SECURITY_SECURITY_RULES_H_
#define TUG_SECURITY_SECURITY_RULES_H_

// Rules that follow from a job's security.mode: where processes may listen, and which keys fit. All
// functions are pure.

#include <string>

#include "absl/status/status.h"
#include "security/job_keys.h"

namespace tug {

// Whether `host`, in a form of `--listen` (address, name or interface), is loopback only.
bool IsLoopback(const std::string& host);

// FAILED_PRECONDITION: a job without keys may listen on loopback only.
absl::Status CheckMayListen(SecurityConfig::Mode mode, const std::string& host);

// Whether a job of this mode can run with these keys. MODE_DEFAULT means NONE. FAILED_PRECONDITION,
// with the remedy.
absl::Status CheckKeysFit(SecurityConfig::Mode mode, const JobKeys& keys);

}  // namespace tug

#endif  // TUG_SECURITY_SECURITY_RULES_H_
