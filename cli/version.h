#ifndef TUG_CLI_VERSION_H_
#define TUG_CLI_VERSION_H_

#include <string>

namespace tug {

// "tug 0.1.0 (control protocol 3, wire format 2)": what `tug --version` says. Programs that say the
// same can work in one job.
std::string VersionText();

}  // namespace tug

#endif  // TUG_CLI_VERSION_H_
