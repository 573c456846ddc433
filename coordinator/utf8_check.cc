// SPDX-License-Identifier: Apache-2.0
#include "coordinator/utf8_check.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/text/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// `prefix`: prepended to the names of the message's fields.
absl::Status CheckStrings(const Message& message, const std::string& prefix) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    const bool repeated = field->is_repeated();
    const int count = repeated ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->type() == FieldDescriptor::TYPE_STRING) {
        RETURN_IF_ERROR(CheckUtf8(path + " =", repeated
                                                   ? reflection.GetRepeatedString(message, field, i)
                                                   : reflection.GetString(message, field)));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        RETURN_IF_ERROR(CheckStrings(repeated ? reflection.GetRepeatedMessage(message, field, i)
                                              : reflection.GetMessage(message, field),
                                     path + "."));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUtf8(const std::string& what, const std::string& text) {
  if (IsUtf8(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", absl::CHexEscape(text),
                   " is not UTF-8 and cannot be sent to nodes: rename or re-encode it"));
}

absl::Status CheckUtf8(const JobConfig& config) { return CheckStrings(config, ""); }

}  // namespace tug
