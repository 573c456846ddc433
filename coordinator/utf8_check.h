// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_UTF8_CHECK_H_
#define TUG_COORDINATOR_UTF8_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

class JobConfig;

// Checks that a text can be in messages to nodes and in the journal. Strings of protobuf are UTF-8;
// a reader rejects the whole message otherwise. Pure. Errors: INVALID_ARGUMENT, with `what` and the
// text, bytes that are not ASCII as \xNN.
absl::Status CheckUtf8(const std::string& what, const std::string& text);

// Checks every string of a configuration; errors name the field.
absl::Status CheckUtf8(const JobConfig& config);

}  // namespace tug

#endif  // TUG_COORDINATOR_UTF8_CHECK_H_
