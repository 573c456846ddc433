#ifndef TUG_CLI_LAST_WORDS_H_
#define TUG_CLI_LAST_WORDS_H_

#include <exception>
#include <string>

namespace tug {

// The one line on stderr that a failure ends with, in the form of the log.
void SayError(const std::string& message);

// For people, one line with the remedy: memory or threads that there are no more of, or else what
// the exception says.
std::string WhyItEnds(const std::exception_ptr& exception);

// From here on an exception that nobody catches, in whatever thread, ends the process with that
// line, by SIGABRT.
void SayLastWords();

}  // namespace tug

#endif  // TUG_CLI_LAST_WORDS_H_
