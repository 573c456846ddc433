// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_TEXT_PROTO_H_
#define TUG_CONFIG_TEXT_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace tug {

// Parses user-written text: a message of proto/job.proto in text form, into an empty `message`.
// Pure. Errors: INVALID_ARGUMENT, one line, "source:line:column: what"; for an unknown field with
// the list of existing ones.
absl::Status ParseTextProto(const std::string& text, const std::string& source,
                            google::protobuf::Message& message);

}  // namespace tug

#endif  // TUG_CONFIG_TEXT_PROTO_H_
