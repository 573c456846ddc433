#ifndef TUG_SECURITY_SECURITY_RULES_H_
#define TUG_SECURITY_SECURITY_RULES_H_

// What follows from a job's security.mode, for whoever listens, and for the keys it is given. All
// functions are pure.

#include <string>

#include "absl/status/status.h"
#include "security/job_keys.h"

namespace tug {

// Whether a host, as `--listen` takes it (address, name or interface), is loopback only.
bool IsLoopback(const std::string& host);

// FAILED_PRECONDITION: a job without keys listens on loopback only.
absl::Status CheckMayListen(SecurityConfig::Mode mode, const std::string& host);

// Whether a job of that mode can be run with these keys. MODE_DEFAULT is NONE. FAILED_PRECONDITION,
// with the remedy.
absl::Status CheckKeysFit(SecurityConfig::Mode mode, const JobKeys& keys);

}  // namespace tug

#endif  // TUG_SECURITY_SECURITY_RULES_H_
