// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SECURITY_KEY_FILE_H_
#define TUG_SECURITY_KEY_FILE_H_

// The file from which a member of a job reads its keys. Lines in this order, each ended by a
// newline; curve-* and tls-* in mode curve only:
//
//   tug keys 1                    version of the format
//   mode token | curve
//   token 64 HEXADECIMAL DIGITS
//   curve-public 40 CHARACTERS    Z85
//   curve-secret 40 CHARACTERS    Z85
//   tls-certificate BASE64        of a PEM text
//   tls-key BASE64                of a PEM text
//   sha256 64 HEXADECIMAL DIGITS  of all lines before
//
// Nothing else is accepted: no comments, no other order, no alternative notation. The exceptions
// are carriage returns at line ends and a missing last newline, which editors produce.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "security/job_keys.h"

namespace tug {

// Environment variable with the path of the job's key file. Read in process/ only.
inline constexpr char kKeysVariable[] = "TUG_KEYS";

// REQUIRES: a mode that has keys.
std::string KeyFileText(const JobKeys& keys);
// `source` names the text in errors; they reveal none of its content. Errors: INVALID_ARGUMENT.
absl::StatusOr<JobKeys> ParseKeyFile(const std::string& text, const std::string& source);

// Errors: those of the file system; FAILED_PRECONDITION: its group or others have a permission on
// it; INVALID_ARGUMENT: not a key file, or not a regular file.
absl::StatusOr<JobKeys> ReadKeyFile(const std::string& path);

// Creates a file of mode 0600. Errors: ALREADY_EXISTS; those of the file system.
absl::Status WriteNewKeyFile(const std::string& path, const JobKeys& keys);
// Creates the file, or replaces an existing one atomically.
absl::Status ReplaceKeyFile(const std::string& path, const JobKeys& keys);

}  // namespace tug

#endif  // TUG_SECURITY_KEY_FILE_H_
