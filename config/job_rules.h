// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_JOB_RULES_H_
#define TUG_CONFIG_JOB_RULES_H_

// Definition of a valid job as two tables: FieldRules() has one row per number, bool and enum of
// JobConfig (default, range), ValidityRules() one per invalid combination. A new field or mode adds
// a row; job_rules_test.cc walks the descriptor and requires a row for each field.

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace tug {

// Marks a default that depends on other fields: see FillDefaults in job_config.cc.
inline constexpr double kComputed = std::numeric_limits<double>::quiet_NaN();

enum class Ends { kBoth, kMaxOnly, kMinOnly };  // which ends belong to the range

struct FieldRule {
  const char* path;
  double fallback;  // default; bools 0 or 1, enums their number
  double min;
  double max;
  const char* meaning;  // unit, for messages
  Ends ends = Ends::kBoth;
};

struct ValidityRule {
  const char* field;
  const char* other_field;  // nullptr: the rule is about one field
  bool (*broken)(const JobConfig& config);
  const char* reason;  // why it is invalid, and what to change
};

std::span<const FieldRule> FieldRules();        // field_rules.cc
std::span<const ValidityRule> ValidityRules();  // validity_rules.cc
// Codec names of comm.push_codec.auto, in order, without blanks.
std::vector<std::string> CandidateNames(const AutoCodec& config);
// Whether the list is valid: not empty, only allowed codecs, those with more bytes first.
bool AreCandidates(const std::vector<std::string>& names);
// Whether the field exists in this configuration: false if it is in an unset member of a oneof.
bool Applies(const JobConfig& config, const FieldRule& rule);

// Checks a configuration with filled-in defaults against both tables. Errors: INVALID_ARGUMENT,
// with field, value, and range or the other field.
absl::Status Validate(const JobConfig& config);

// The first half of Validate: checks that each number, bool and enum is in its range.
absl::Status CheckRanges(const JobConfig& config);

}  // namespace tug

#endif  // TUG_CONFIG_JOB_RULES_H_
