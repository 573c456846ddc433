// SPDX-License-Identifier: Apache-2.0
#include "config/text_proto.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "config/field_path.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace tug {
namespace {

// Keeps the first error of a parse as "file:line:column: what".
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(std::string source) : source_(std::move(source)) {}

  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat(source_, ":", line + 1, ":", column + 1, ": ", message, Remedy(message));
  }
  const std::string& text() const { return text_; }

 private:
  // Lists the existing fields or names, if the parser reports an unknown one.
  static std::string Remedy(const std::string& message) {
    const std::vector<std::string> quoted = absl::StrSplit(message, '"');
    const auto* pool = google::protobuf::DescriptorPool::generated_pool();
    if (absl::StrContains(message, "has no field named") && quoted.size() > 1) {
      const auto* type = pool->FindMessageTypeByName(quoted[1]);
      if (type != nullptr && quoted.size() > 3) {
        return absl::StrCat(MeantField(*type, quoted[3]), " Available: ", FieldNames(*type), ".");
      }
    }
    if (absl::StartsWith(message, "Unknown enumeration value") && quoted.size() > 3) {
      return absl::StrCat(" `tug help job` lists the names.");
    }
    return " `tug help job` describes the file.";
  }

  std::string source_;
  std::string text_;
};

}  // namespace

absl::Status ParseTextProto(const std::string& text, const std::string& source,
                            google::protobuf::Message& message) {
  FirstError error(source);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(32);
  if (parser.ParseFromString(text, &message)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      error.text().empty()
          ? absl::StrCat(source, ": not a text-proto ", message.GetDescriptor()->name())
          : error.text());
}

}  // namespace tug
