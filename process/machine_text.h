// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_MACHINE_TEXT_H_
#define TUG_PROCESS_MACHINE_TEXT_H_

// Description of the machine and build of a measurement. Thread-safe.

#include <string>

namespace tug {

// CPU name from the kernel; "unknown" if it gives none.
std::string CpuModel();

// "AMD EPYC 7B13, 2 cores, 8 GB, Linux 6.1.0".
std::string MachineText();

// Commit of the Tugboat checkout that contains the current folder, with "+ changes" if it is
// modified; empty: not in a checkout, or no git. Runs git.
std::string CheckoutCommit();

}  // namespace tug

#endif  // TUG_PROCESS_MACHINE_TEXT_H_
