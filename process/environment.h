// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_ENVIRONMENT_H_
#define TUG_PROCESS_ENVIRONMENT_H_

#include <map>
#include <string>

namespace tug {

// Environment variables by name. An empty variable counts as unset.
using Environment = std::map<std::string, std::string>;

// Variables of this process.
Environment ReadEnvironment();

// Empty if it is unset.
std::string ValueOf(const Environment& environment, const std::string& name);

}  // namespace tug

#endif  // TUG_PROCESS_ENVIRONMENT_H_
