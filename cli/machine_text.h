#ifndef TUG_CLI_MACHINE_TEXT_H_
#define TUG_CLI_MACHINE_TEXT_H_

// What figures are measured on and by, in words. Thread-safe.

#include <string>

namespace tug {

// As the kernel names it; "unknown".
std::string CpuModel();

// "AMD EPYC 7B13, 2 cores, 8 GB, Linux 6.1.0".
std::string MachineText();

// Of the Tugboat checkout that the current folder is in, "+ changes" where it has some; empty: it
// is in none, or there is no git. Starts git.
std::string CheckoutCommit();

}  // namespace tug

#endif  // TUG_CLI_MACHINE_TEXT_H_
