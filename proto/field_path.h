#ifndef TUG_PROTO_FIELD_PATH_H_
#define TUG_PROTO_FIELD_PATH_H_

// A field of a message by its path ("train.steps"), through protobuf reflection. Singular fields
// only: numbers, bools, strings, enums, nested messages. Thread-safe as far as the message is.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace tug {

struct FieldRef {
  const google::protobuf::Message* message;  // the one that directly holds the field
  const google::protobuf::FieldDescriptor* field;

  // Set in the message (or without presence).
  bool IsSet() const;
  // Anything but the default that a message without the field has.
  bool IsPresent() const;
  // REQUIRES: a number, bool or enum. 64-bit integers beyond 2^53 are rounded.
  double Number() const;
  // As written in a job file: 0.1, true, GLOBAL, "text" in quotes.
  std::string Text() const;
};

// Errors: NOT_FOUND, naming the part that does not exist and the fields that do.
absl::StatusOr<FieldRef> FindField(const google::protobuf::Message& root, const std::string& path);

// Whether no part of the path is a member of a oneof that is not set. Errors: as FindField.
absl::StatusOr<bool> IsChosen(const google::protobuf::Message& root, const std::string& path);

// Sets a field from text; parent messages come into being. Enums by name, upper or lower case;
// a nested message as a whole by its text in braces, "{}" for an empty one.
// Errors: as FindField; INVALID_ARGUMENT, naming type and bounds, for a value that does not fit the
// type.
absl::Status SetFieldFromText(google::protobuf::Message& root, const std::string& path,
                              const std::string& value);

// Sets a number, bool or enum. REQUIRES: the path exists and the value fits the type.
void SetFieldFromNumber(google::protobuf::Message& root, const std::string& path, double value);

// "steps, global_batch, ...": for messages to people.
std::string FieldNames(const google::protobuf::Descriptor& type);

// The names of an enum that may be written, without the one that stands for "not given" (number 0).
std::string EnumNames(const google::protobuf::EnumDescriptor& type);

}  // namespace tug

#endif  // TUG_PROTO_FIELD_PATH_H_
