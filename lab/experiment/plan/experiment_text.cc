// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/plan/experiment_text.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "config/text_proto.h"
#include "google/protobuf/descriptor.h"
#include "lab/experiment/plan/nearest_name.h"

namespace tug {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

// Adapts a message of ParseTextProto to experiment files, and adds the nearest name to
//   Message type "tug.Axis" has no field named "valeus".
std::string Message(std::string message) {
  message = absl::StrReplaceAll(message, {{" `tug help job` describes the file.", ""},
                                          {" `tug help job` lists the names.", ""}});
  const std::vector<std::string> quoted = absl::StrSplit(message, '"');
  const Descriptor* type = quoted.size() < 4
                               ? nullptr
                               : DescriptorPool::generated_pool()->FindMessageTypeByName(quoted[1]);
  std::string nearest;
  if (type != nullptr) {
    std::vector<std::string> names;
    for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
    nearest = DidYouMean(quoted[3], names);
  }
  return absl::StrCat(absl::StripSuffix(message, "."), nearest, nearest.empty() ? "." : "",
                      " `tug help experiment` describes the file.");
}

}  // namespace

absl::StatusOr<ExperimentText> ExperimentText::Parse(const std::string& text,
                                                     const std::string& source) {
  ExperimentText parsed;
  parsed.source_ = source;
  const absl::Status status = ParseTextProto(text, source, parsed.file_);
  if (!status.ok()) {
    return absl::InvalidArgumentError(Message(std::string(status.message())));
  }
  // Parses again to record the lines of fields.
  Experiment ignored;
  parsed.places_ = std::make_unique<TextFormat::ParseInfoTree>();
  TextFormat::Parser parser;
  parser.WriteLocationsTo(parsed.places_.get());
  if (!parser.ParseFromString(text, &ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": not a text-proto Experiment"));
  }
  return parsed;
}

absl::Status ExperimentText::Error(const std::vector<Step>& path, const std::string& what) const {
  const Descriptor* type = Experiment::descriptor();
  const TextFormat::ParseInfoTree* tree = places_.get();
  int line = -1;
  for (const Step& step : path) {
    const FieldDescriptor* field = type == nullptr ? nullptr : type->FindFieldByName(step.field);
    if (field == nullptr || tree == nullptr) break;
    const int number = field->is_repeated() ? step.number : -1;
    const int here = tree->GetLocation(field, number).line;
    if (here < 0) break;
    line = here;
    type = field->message_type();
    tree = type == nullptr ? nullptr : tree->GetTreeForNested(field, number);
  }
  return absl::InvalidArgumentError(line < 0 ? absl::StrCat(source_, ": ", what)
                                             : absl::StrCat(source_, ":", line + 1, ": ", what));
}

}  // namespace tug
