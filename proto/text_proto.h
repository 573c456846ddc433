#ifndef TUG_PROTO_TEXT_PROTO_H_
#define TUG_PROTO_TEXT_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace tug {

// Reads what a person wrote: a message of proto/job.proto in text form, into an empty `message`.
// Pure. Errors: INVALID_ARGUMENT, one line, "source:line:column: what", with the fields there are
// where the text names one that is not.
absl::Status ParseTextProto(const std::string& text, const std::string& source,
                            google::protobuf::Message& message);

}  // namespace tug

#endif  // TUG_PROTO_TEXT_PROTO_H_
