#ifndef TUG_CLI_LAST_WORDS_H_
#define TUG_CLI_LAST_WORDS_H_

#include <exception>
#include <string>

namespace tug {

// For people, one line with the remedy: memory or threads that there are no more of, or else what
// the exception says.
std::string WhyItEnds(const std::exception_ptr& exception);

// From here on an exception that nobody catches, in whatever thread, ends the process with that
// line on stderr and exit code 1.
void SayLastWords();

}  // namespace tug

#endif  // TUG_CLI_LAST_WORDS_H_
