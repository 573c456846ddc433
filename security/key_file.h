#ifndef TUG_SECURITY_KEY_FILE_H_
#define TUG_SECURITY_KEY_FILE_H_

// The file that a member of a job has its keys from. Lines in this order, each ended by a newline;
// the last four names of CURVE only:
//
//   tug keys 1                    version of the form
//   mode token | curve
//   token 64 HEXADECIMAL DIGITS
//   curve-public 40 CHARACTERS    Z85
//   curve-secret 40 CHARACTERS
//   tls-certificate BASE64        of a PEM text
//   tls-key BASE64
//   sha256 64 HEXADECIMAL DIGITS  of all lines before
//
// Nothing else is taken: no comment, no other order, no other way to write the same, but that
// carriage returns at ends of lines, and a missing last newline, are an editor's.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "security/job_keys.h"

namespace tug {

// In the environment of a process: the path of its job's key file. Read in cli/ only.
inline constexpr char kKeysVariable[] = "TUG_KEYS";

// REQUIRES: a mode that has keys.
std::string KeyFileText(const JobKeys& keys);
// `source` names the text in errors, which say nothing of what it holds: INVALID_ARGUMENT.
absl::StatusOr<JobKeys> ParseKeyFile(const std::string& text, const std::string& source);

// Errors: those of the file system; FAILED_PRECONDITION: others than its owner may read it;
// INVALID_ARGUMENT: it is no key file.
absl::StatusOr<JobKeys> ReadKeyFile(const std::string& path);

// A file that only its owner may read and write. Errors: ALREADY_EXISTS; those of the file system.
absl::Status WriteNewKeyFile(const std::string& path, const JobKeys& keys);
// The same, in place of one that is there.
absl::Status ReplaceKeyFile(const std::string& path, const JobKeys& keys);

}  // namespace tug

#endif  // TUG_SECURITY_KEY_FILE_H_
