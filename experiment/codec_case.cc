#include "experiment/codec_case.h"

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"

namespace tug {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::OneofDescriptor;

constexpr char kFp32[] = "fp32";

const OneofDescriptor& Codecs() { return *PushCodecConfig::descriptor()->FindOneofByName("codec"); }

// The message of a codec; null: there is none of that name.
const Descriptor* FindCodecMessage(const std::string& name) {
  for (int i = 0; i < Codecs().field_count(); ++i) {
    if (Codecs().field(i)->name() == name) return Codecs().field(i)->message_type();
  }
  return nullptr;
}

absl::Status Refused(const std::string& text, const std::string& why) {
  std::vector<std::string> names = {kFp32};
  for (int i = 0; i < Codecs().field_count(); ++i) names.push_back(Codecs().field(i)->name());
  return absl::InvalidArgumentError(
      absl::StrCat("--codecs ", text, ": ", why, ": CODEC[:NUMBER][+ef|-ef][/PULL], with CODEC ",
                   absl::StrJoin(names, ", "), "; PULL fp32, bf16, int8, changes[:NUMBER], auto"));
}

// None: nothing is pulled so.
std::optional<CommConfig::Format> PullFormatOf(const std::string& name) {
  if (name == "auto") return CommConfig::PULL_AUTO;
  CommConfig::Format format = CommConfig::FORMAT_DEFAULT;
  const bool known = CommConfig::Format_Parse(absl::AsciiStrToUpper(name), &format) &&
                     format != CommConfig::FORMAT_DEFAULT && format != CommConfig::PULL_AUTO;
  return known ? std::optional(format) : std::nullopt;
}

// What follows the slash.
absl::Status ParsePull(const std::string& text, absl::string_view pull, CodecCase& codec) {
  const absl::string_view name = pull.substr(0, pull.find(':'));
  const std::optional<CommConfig::Format> format = PullFormatOf(std::string(name));
  if (!format.has_value()) {
    return Refused(text, absl::StrCat("nothing is pulled as \"", name, "\""));
  }
  codec.pull = *format;
  if (name == pull) return absl::OkStatus();
  if (codec.pull != CommConfig::CHANGES) return Refused(text, "only changes take a number");
  if (!absl::SimpleAtod(pull.substr(name.size() + 1), &codec.pull_density)) {
    return Refused(text, "no number after the colon");
  }
  return absl::OkStatus();
}

// The field that a number after the colon is of; null: the codec takes none.
const google::protobuf::FieldDescriptor* NumberOf(const Descriptor& codec) {
  if (codec.field_count() == 0) return nullptr;
  using Field = google::protobuf::FieldDescriptor;
  return codec.field(0)->cpp_type() == Field::CPPTYPE_STRING ? nullptr : codec.field(0);
}

}  // namespace

absl::StatusOr<CodecCase> ParseCodecCase(const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  absl::string_view push = lower;
  CodecCase codec;
  std::string ending;
  if (const size_t slash = push.find('/'); slash != push.npos) {
    const std::string pull(push.substr(slash + 1));
    RETURN_IF_ERROR(ParsePull(text, pull, codec));
    if (codec.pull != CommConfig::FP32) ending = absl::StrCat("/", pull);
    push = push.substr(0, slash);
  }
  std::string feedback;
  if (absl::ConsumeSuffix(&push, "+ef")) {
    feedback = " error_feedback: true";
    ending.insert(0, "+ef");
  } else if (absl::ConsumeSuffix(&push, "-ef")) {
    feedback = " error_feedback: false";
    ending.insert(0, "-ef");
  }
  const std::string name(push.substr(0, push.find(':')));
  codec.name = absl::StrCat(push, ending);
  if (name == kFp32) {
    if (push != name || !feedback.empty()) return Refused(text, "fp32 leaves nothing out");
    return codec;
  }
  const Descriptor* const message = FindCodecMessage(name);
  if (message == nullptr) return Refused(text, absl::StrCat("no codec \"", name, "\""));
  std::string setting;
  if (push != name) {
    const auto* const field = NumberOf(*message);
    if (field == nullptr) return Refused(text, name + " takes no number");
    double number = 0;
    if (!absl::SimpleAtod(push.substr(name.size() + 1), &number)) {
      return Refused(text, "no number after the colon");
    }
    setting = absl::StrFormat("%s: %.9g", field->name(), number);
  }
  codec.push_text = absl::StrCat(name, " {", setting, "}", feedback);
  return codec;
}

}  // namespace tug
