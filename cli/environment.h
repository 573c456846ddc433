#ifndef TUG_CLI_ENVIRONMENT_H_
#define TUG_CLI_ENVIRONMENT_H_

#include <map>
#include <string>

namespace tug {

// Environment variables by name. One that is empty counts as not there.
using Environment = std::map<std::string, std::string>;

// Those of this process.
Environment ReadEnvironment();

// Empty if it is not there.
std::string ValueOf(const Environment& environment, const std::string& name);

}  // namespace tug

#endif  // TUG_CLI_ENVIRONMENT_H_
