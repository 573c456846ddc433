// SPDX-License-Identifier: Apache-2.0
#include "config/field_path.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/nearest_name.h"
#include "base/status_macros.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace tug {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Paths of all fields below `type`.
void AppendPaths(const Descriptor& type, const std::string& prefix, int depth,
                 std::vector<std::string>& paths) {
  constexpr int kMaxDepth = 6;
  for (int i = 0; i < type.field_count() && depth < kMaxDepth; ++i) {
    const FieldDescriptor* field = type.field(i);
    if (absl::StartsWith(field->name(), "resolved_")) continue;  // no user sets them
    paths.push_back(absl::StrCat(prefix, field->name()));
    if (field->message_type() == nullptr) continue;
    AppendPaths(*field->message_type(), absl::StrCat(paths.back(), "."), depth + 1, paths);
  }
}

// Fields along `path`, from the root's to the last.
absl::StatusOr<std::vector<const FieldDescriptor*>> FieldsAlong(const Descriptor& root,
                                                                const std::string& path) {
  std::vector<const FieldDescriptor*> fields;
  const Descriptor* type = &root;
  std::string so_far;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    if (type == nullptr) {
      return absl::NotFoundError(
          absl::StrCat(path, ": ", so_far, " is a single value and has no field \"", name, "\""));
    }
    const FieldDescriptor* field = type->FindFieldByName(name);
    if (field == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          path, ": no field \"", name, "\"", so_far.empty() ? "" : absl::StrCat(" in ", so_far),
          MeantField(root, path), "; available: ", FieldNames(*type)));
    }
    fields.push_back(field);
    absl::StrAppend(&so_far, so_far.empty() ? "" : ".", name);
    type = field->message_type();
  }
  return fields;
}

absl::Status Unfit(const std::string& path, const std::string& value, const std::string& wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " = ", value, " is not ", wanted, "; write ", path, "=VALUE"));
}

// Parses an integer of the field's type, or returns why it does not fit. T: int32, int64, uint32,
// uint64.
template <typename T, typename Set>
absl::Status SetInteger(const std::string& path, const std::string& value, Set set) {
  T number = 0;
  if (!absl::SimpleAtoi(value, &number)) {
    return Unfit(path, value,
                 absl::StrCat("a whole number in ", std::numeric_limits<T>::min(), "..",
                              std::numeric_limits<T>::max()));
  }
  set(number);
  return absl::OkStatus();
}

absl::Status SetEnum(Message& parent, const FieldDescriptor& field, const std::string& path,
                     const std::string& value) {
  const EnumDescriptor& type = *field.enum_type();
  const EnumValueDescriptor* found = type.FindValueByName(absl::AsciiStrToUpper(value));
  if (found == nullptr) return Unfit(path, value, absl::StrCat("one of ", EnumNames(type)));
  parent.GetReflection()->SetEnum(&parent, &field, found);
  return absl::OkStatus();
}

// Suppresses the parser's messages: the caller reports the error with the path.
class SilentCollector : public google::protobuf::io::ErrorCollector {
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
};

// `value`: the message's text in braces.
absl::Status SetMessage(Message& message, const std::string& path, const std::string& value) {
  SilentCollector collector;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  if (parser.ParseFromString(value.substr(1, value.size() - 2), &message)) return absl::OkStatus();
  return Unfit(path, value,
               absl::StrCat("its fields in braces (", FieldNames(*message.GetDescriptor()), ")"));
}

absl::Status SetValue(Message& parent, const FieldDescriptor& field, const std::string& path,
                      const std::string& value) {
  const Reflection& reflection = *parent.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return SetInteger<int32_t>(path, value,
                                 [&](int32_t n) { reflection.SetInt32(&parent, &field, n); });
    case FieldDescriptor::CPPTYPE_INT64:
      return SetInteger<int64_t>(path, value,
                                 [&](int64_t n) { reflection.SetInt64(&parent, &field, n); });
    case FieldDescriptor::CPPTYPE_UINT32:
      return SetInteger<uint32_t>(path, value,
                                  [&](uint32_t n) { reflection.SetUInt32(&parent, &field, n); });
    case FieldDescriptor::CPPTYPE_UINT64:
      return SetInteger<uint64_t>(path, value,
                                  [&](uint64_t n) { reflection.SetUInt64(&parent, &field, n); });
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT: {
      double number = 0;
      if (!absl::SimpleAtod(value, &number)) return Unfit(path, value, "a number");
      SetFieldFromNumber(parent, field.name(), number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool truth = false;
      if (!absl::SimpleAtob(value, &truth)) return Unfit(path, value, "true or false");
      reflection.SetBool(&parent, &field, truth);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.SetString(&parent, &field, value);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnum(parent, field, path, value);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (value.size() >= 2 && value.front() == '{' && value.back() == '}') {
        return SetMessage(*reflection.MutableMessage(&parent, &field), path, value);
      }
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(path, " is a group of fields; set one of them: ",
                                                 path, ".", FieldNames(*field.message_type())));
}

}  // namespace

bool FieldRef::IsSet() const {
  return !field->has_presence() || message->GetReflection()->HasField(*message, field);
}

bool FieldRef::IsPresent() const {
  const Reflection& reflection = *message->GetReflection();
  if (field->is_repeated()) return reflection.FieldSize(*message, field) > 0;
  return reflection.HasField(*message, field);
}

double FieldRef::Number() const {
  const Reflection& reflection = *message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(*message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(reflection.GetInt64(*message, field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(*message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(reflection.GetUInt64(*message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(*message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(*message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(*message, field) ? 1 : 0;
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnumValue(*message, field);
    default:
      TUG_CHECK(false) << field->full_name() << " is not a number";
      return 0;
  }
}

std::string FieldRef::Text() const {
  using google::protobuf::TextFormat;
  std::string text;
  if (!field->is_repeated()) {
    TextFormat::PrintFieldValueToString(*message, field, -1, &text);
    return text;
  }
  std::vector<std::string> elements;
  for (int i = 0; i < message->GetReflection()->FieldSize(*message, field); ++i) {
    TextFormat::PrintFieldValueToString(*message, field, i, &text);
    elements.push_back(text);
  }
  return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
}

absl::StatusOr<const FieldDescriptor*> FindFieldType(const Descriptor& root,
                                                     const std::string& path) {
  ASSIGN_OR_RETURN(const auto fields, FieldsAlong(root, path));
  return fields.back();
}

absl::StatusOr<FieldRef> FindField(const Message& root, const std::string& path) {
  ASSIGN_OR_RETURN(const auto fields, FieldsAlong(*root.GetDescriptor(), path));
  const Message* message = &root;
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    TUG_CHECK(!fields[i]->is_repeated()) << path;
    message = &message->GetReflection()->GetMessage(*message, fields[i]);
  }
  return FieldRef{message, fields.back()};
}

absl::StatusOr<bool> IsChosen(const Message& root, const std::string& path) {
  ASSIGN_OR_RETURN(const auto fields, FieldsAlong(*root.GetDescriptor(), path));
  const Message* message = &root;
  for (const FieldDescriptor* field : fields) {
    const Reflection& reflection = *message->GetReflection();
    if (field->real_containing_oneof() != nullptr && !reflection.HasField(*message, field)) {
      return false;
    }
    if (field->message_type() != nullptr) message = &reflection.GetMessage(*message, field);
  }
  return true;
}

absl::Status SetFieldFromText(Message& root, const std::string& path, const std::string& value) {
  ASSIGN_OR_RETURN(const auto fields, FieldsAlong(*root.GetDescriptor(), path));
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is a list; write it in the job file instead"));
    }
  }
  Message* message = &root;
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    message = message->GetReflection()->MutableMessage(message, fields[i]);
  }
  return SetValue(*message, *fields.back(), path, value);
}

void SetFieldFromNumber(Message& root, const std::string& path, double value) {
  const auto fields = FieldsAlong(*root.GetDescriptor(), path);
  TUG_CHECK_OK(fields);
  Message* message = &root;
  for (size_t i = 0; i + 1 < fields->size(); ++i) {
    message = message->GetReflection()->MutableMessage(message, (*fields)[i]);
  }
  const FieldDescriptor* field = fields->back();
  const Reflection& reflection = *message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(message, field, static_cast<uint32_t>(value));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(message, field, static_cast<uint64_t>(value));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(message, field, static_cast<int32_t>(value));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(message, field, static_cast<int64_t>(value));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(message, field, value);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.SetFloat(message, field, static_cast<float>(value));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(message, field, value != 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(message, field, static_cast<int>(value));
    default:
      TUG_CHECK(false) << path << " is not a number";
  }
}

std::string MeantField(const Descriptor& root, const std::string& path) {
  std::vector<std::string> paths, names;
  AppendPaths(root, "", 0, paths);
  for (const std::string& known : paths) {
    names.push_back(known.substr(known.rfind('.') + 1));
    if (names.back() == path) return absl::StrCat("; did you mean ", known, "?");
  }
  if (const std::string meant = DidYouMean(path, paths); !meant.empty()) return meant;
  const auto found = std::ranges::find(names, NearestName(path, names));
  if (found == names.end()) return "";
  return absl::StrCat("; did you mean ", paths[static_cast<size_t>(found - names.begin())], "?");
}

std::string FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return absl::StrJoin(names, ", ");
}

std::string EnumValueText(const EnumValueDescriptor& value) {
  const EnumDescriptor& type = *value.type();
  std::vector<std::string> aliases;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() == value.number()) aliases.push_back(type.value(i)->name());
  }
  const std::string name = type.FindValueByNumber(value.number())->name();
  std::erase(aliases, name);
  return aliases.empty() ? name : absl::StrCat(name, " (", absl::StrJoin(aliases, ", "), ")");
}

std::string EnumNames(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const EnumValueDescriptor* const value = type.value(i);
    const bool is_alias = type.FindValueByNumber(value->number()) != value;
    if (value->number() != 0 && !is_alias) names.push_back(EnumValueText(*value));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace tug
