// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_OWN_BUNDLE_H_
#define TUG_LAUNCH_OWN_BUNDLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

// A file of this process's bundle (deploy/bundle packs the same files, stripped and with licences).
struct BundledFile {
  std::string name;  // "bin/tug", "lib/tug/libzmq.so.5"
  std::string path;  // local path
};

// This program and the shared libraries it has loaded, except those that every host must provide:
// glibc's and the GPU driver's.
std::vector<BundledFile> OwnBundle();

// Hash of the files' names and contents: 32 hexadecimal digits. Errors: those of reading.
absl::StatusOr<std::string> HashOfFiles(const std::vector<BundledFile>& files);

// First line of `tar` in a program's log, since its last line does not give the cause; else
// LastWords.
std::string WordsOfTar(const std::string& log_path);

// Packs the files, below tug/, into an archive `folder`/tug.tar with the program `tar`; returns its
// path. Errors: those of the file system; CANCELLED; FAILED_PRECONDITION, with `tar`'s message.
absl::StatusOr<std::string> PackFiles(const std::vector<BundledFile>& files,
                                      const std::string& folder);

}  // namespace tug

#endif  // TUG_LAUNCH_OWN_BUNDLE_H_
