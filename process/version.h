// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_VERSION_H_
#define TUG_PROCESS_VERSION_H_

#include <string>

namespace tug {

// "tug 0.1.0 (control protocol 3, wire format 2)": output of `tug --version`. Programs with the
// same text can work in one job.
std::string VersionText();

}  // namespace tug

#endif  // TUG_PROCESS_VERSION_H_
