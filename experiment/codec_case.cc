#include "experiment/codec_case.h"

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
                   absl::StrJoin(names, ", "), "; PULL fp32, bf16, int8, changes[:NUMBER]"));
}

// What follows the slash.
absl::Status ParsePull(const std::string& text, absl::string_view pull, CodecCase& codec) {
  const absl::string_view name = pull.substr(0, pull.find(':'));
  if (!CommConfig::Format_Parse(absl::AsciiStrToUpper(name), &codec.pull) ||
      codec.pull == CommConfig::FORMAT_DEFAULT) {
    return Refused(text, absl::StrCat("nothing is pulled as \"", name, "\""));
  }
  if (name == pull) return absl::OkStatus();
  if (codec.pull != CommConfig::CHANGES) return Refused(text, "only changes take a number");
  if (!absl::SimpleAtod(pull.substr(name.size() + 1), &codec.pull_density)) {
    return Refused(text, "no number after the colon");
  }
  return absl::OkStatus();
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
    if (message->field_count() == 0) return Refused(text, name + " takes no number");
    double number = 0;
    if (!absl::SimpleAtod(push.substr(name.size() + 1), &number)) {
      return Refused(text, "no number after the colon");
    }
    setting = absl::StrFormat("%s: %.9g", message->field(0)->name(), number);
  }
  codec.push_text = absl::StrCat(name, " {", setting, "}", feedback);
  return codec;
}

}  // namespace tug
