// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_FIELD_PATH_H_
#define TUG_CONFIG_FIELD_PATH_H_

// Access to a field of a message by its path ("train.steps"), through protobuf reflection. Singular
// fields only: numbers, bools, strings, enums, nested messages. As thread-safe as the message.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace tug {

struct FieldRef {
  const google::protobuf::Message* message;  // the message that directly contains the field
  const google::protobuf::FieldDescriptor* field;

  // Whether the field is set in the message (or has no presence).
  bool IsSet() const;
  // Whether the field differs from the default of an absent field.
  bool IsPresent() const;
  // REQUIRES: a number, bool or enum. 64-bit integers beyond 2^53 are rounded.
  double Number() const;
  // As written in a job file: 0.1, true, GLOBAL, "text" in quotes.
  std::string Text() const;
};

// Type of the field at a path, which may lead through lists. Errors: as FindField.
absl::StatusOr<const google::protobuf::FieldDescriptor*> FindFieldType(
    const google::protobuf::Descriptor& root, const std::string& path);

// REQUIRES: the path leads through no list. Errors: NOT_FOUND, naming the path part that does not
// exist and the existing fields.
absl::StatusOr<FieldRef> FindField(const google::protobuf::Message& root, const std::string& path);

// Whether no part of the path is an unset member of a oneof. Errors: as FindField.
absl::StatusOr<bool> IsChosen(const google::protobuf::Message& root, const std::string& path);

// Sets a field from text and creates its parent messages. Enums by name, upper or lower case; a
// nested message as a whole by its text in braces, "{}" for an empty one. Errors: as FindField;
// INVALID_ARGUMENT, naming type and bounds, for a value that does not fit the type.
absl::Status SetFieldFromText(google::protobuf::Message& root, const std::string& path,
                              const std::string& value);

// Sets a number, bool or enum. REQUIRES: the path exists and the value fits the type.
void SetFieldFromNumber(google::protobuf::Message& root, const std::string& path, double value);

// "; did you mean train.steps?" for a path without a field, such as "train.stesp" or "steps"; empty
// if no field is similar.
std::string MeantField(const google::protobuf::Descriptor& root, const std::string& path);

// "steps, global_batch, ...": for user-facing messages.
std::string FieldNames(const google::protobuf::Descriptor& type);

// Name of an enum's value, followed by its aliases: "FIFO (WFBP)".
std::string EnumValueText(const google::protobuf::EnumValueDescriptor& value);

// Names that a user may write for an enum: all except the one for "not given" (number 0).
std::string EnumNames(const google::protobuf::EnumDescriptor& type);

}  // namespace tug

#endif  // TUG_CONFIG_FIELD_PATH_H_
