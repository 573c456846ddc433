#ifndef TUG_CLI_OWN_BUNDLE_H_
#define TUG_CLI_OWN_BUNDLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

// A file of the bundle of this process (deploy/bundle packs the same, stripped and with licences).
struct BundledFile {
  std::string name;  // "bin/tug", "lib/tug/libzmq.so.5"
  std::string path;  // where it is here
};

// The program that runs, and the shared libraries that it has loaded, but for those that a host
// must have of its own: glibc's and the GPU's driver.
std::vector<BundledFile> OwnBundle();

// Of the contents and names of files: 32 hexadecimal digits. Errors: those of reading.
absl::StatusOr<std::string> HashOfFiles(const std::vector<BundledFile>& files);

// The first line of `tar` in what a program has said, since its last one tells no cause; or else
// LastWords.
std::string WordsOfTar(const std::string& log_path);

// Packs them, below tug/, into an archive `folder`/tug.tar with the program `tar`; returns its
// path. Errors: those of the file system; FAILED_PRECONDITION, what `tar` said.
absl::StatusOr<std::string> PackFiles(const std::vector<BundledFile>& files,
                                      const std::string& folder);

}  // namespace tug

#endif  // TUG_CLI_OWN_BUNDLE_H_
