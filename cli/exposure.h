#ifndef TUG_CLI_EXPOSURE_H_
#define TUG_CLI_EXPOSURE_H_

#include <string>

namespace tug {

// Whether a host names this machine's loopback interface only.
bool IsLoopback(const std::string& host);

// Says on stderr, if `host` is not loopback, that what is listened to there is neither encrypted
// nor authenticated.
void WarnIfExposed(const std::string& host);

}  // namespace tug

#endif  // TUG_CLI_EXPOSURE_H_
