// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CHECKPOINT_MANIFEST_FILE_H_
#define TUG_CHECKPOINT_MANIFEST_FILE_H_

// The manifest as a file: proto/manifest.proto in text form, and a last line
//
//   # xxh3 0123456789abcdef
//
// with the XXH3-64, as 16 hexadecimal digits, of everything before that line.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/manifest.pb.h"

namespace tug {

inline constexpr char kManifestFile[] = "manifest.textproto";
inline constexpr uint32_t kManifestFormatVersion = 1;

// Whether a manifest may list a file of this name: a file in the same folder, other than the
// manifest.
bool IsPlainFileName(const std::string& name);

// Writes and syncs folder/manifest.textproto; deletes the partial file on failure.
absl::Status WriteManifest(const std::string& folder, const Manifest& manifest);

// Errors: NOT_FOUND (no such file); DATA_LOSS (the checksum does not match, or it lists files
// outside the folder), FAILED_PRECONDITION (another format_version, or a configuration beyond the
// limits of a job). Messages name the file; the caller adds the remedy.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

}  // namespace tug

#endif  // TUG_CHECKPOINT_MANIFEST_FILE_H_
