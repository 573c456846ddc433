// SPDX-License-Identifier: Apache-2.0
#include "config/field_rules.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_size.h"
#include "proto/field_rule.pb.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

// Appends the fields of `type` and of the messages in it. REQUIRES: no message contains itself.
void AppendFields(const google::protobuf::Descriptor& type, const std::string& prefix,
                  std::vector<JobField>& fields) {
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const std::string path = absl::StrCat(prefix, field.name());
    if (field.options().HasExtension(rule)) {
      fields.push_back({path, field.options().GetExtension(rule)});
    }
    if (field.message_type() != nullptr) {
      AppendFields(*field.message_type(), absl::StrCat(path, "."), fields);
    }
  }
}

// 1e6 instead of 1000000.
std::string NumberText(double value) {
  const std::string text = absl::StrFormat("%.15g", value);
  const size_t zeros = text.size() - 1 - text.find_last_not_of('0');
  if (zeros < 6) return text;
  return absl::StrCat(text.substr(0, text.size() - zeros), "e", zeros);
}

// A default as written, and a number of bytes also as "4 MiB".
std::string DefaultText(const FieldRule& rule) {
  uint64_t bytes = 0;
  if (rule.unit() != "bytes" || !absl::SimpleAtoi(rule.default_(), &bytes)) return rule.default_();
  return absl::StrCat(rule.default_(), " (", ByteSizeText(bytes), ")");
}

}  // namespace

std::span<const JobField> JobFields() {
  static const auto* const fields = [] {
    auto* all = new std::vector<JobField>;
    AppendFields(*JobConfig::descriptor(), "", *all);
    return all;
  }();
  return *fields;
}

bool InRange(const FieldRule& rule, double value) {
  return std::isfinite(value) && (!rule.has_min() || value >= rule.min()) &&
         (!rule.has_above() || value > rule.above()) && (!rule.has_max() || value <= rule.max()) &&
         (!rule.has_below() || value < rule.below());
}

std::string RangeText(const FieldRule& rule) {
  const std::string lower = NumberText(rule.has_above() ? rule.above() : rule.min());
  const std::string upper = NumberText(rule.has_below() ? rule.below() : rule.max());
  const bool closed = rule.has_min() && rule.has_max();
  const std::string range = closed ? absl::StrCat(lower, "..", upper)
                                   : absl::StrCat(rule.has_above() ? "(" : "[", lower, ", ", upper,
                                                  rule.has_below() ? ")" : "]");
  return rule.unit().empty() ? range : absl::StrCat(range, " ", rule.unit());
}

std::string RuleText(const FieldRule& rule) {
  const bool ranged = rule.lower_case() != FieldRule::LOWER_NOT_SET;
  if (!rule.has_default_()) return ranged ? absl::StrCat("Range ", RangeText(rule), ".") : "";
  return absl::StrCat("Default ", DefaultText(rule),
                      ranged ? absl::StrCat(", range ", RangeText(rule)) : "", ".");
}

}  // namespace tug
