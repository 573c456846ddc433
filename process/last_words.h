// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_LAST_WORDS_H_
#define TUG_PROCESS_LAST_WORDS_H_

#include <exception>
#include <string>

namespace tug {

// Prints the one line on stderr that a failure ends with, in the log format.
void ReportError(const std::string& message);

// One user-facing line: the remedy if memory or threads have run out, else the exception's message.
std::string WhyItEnds(const std::exception_ptr& exception);

// Makes an uncaught exception, in any thread, end the process with that line and SIGABRT.
void ReportUncaughtExceptions();

}  // namespace tug

#endif  // TUG_PROCESS_LAST_WORDS_H_
