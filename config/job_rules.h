// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_JOB_RULES_H_
#define TUG_CONFIG_JOB_RULES_H_

// Definition of a valid job: each number, bool and enum is in its range (config/field_rules.h), and
// no row of ValidityRules() finds an invalid combination.

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/field_rules.h"
#include "proto/job.pb.h"

namespace tug {

struct ValidityRule {
  const char* field;
  const char* other_field;  // nullptr: the rule is about one field
  bool (*broken)(const JobConfig& config);
  const char* reason;  // why it is invalid, and what to change
};

std::span<const ValidityRule> ValidityRules();  // validity_rules.cc
// Codec names of comm.push_codec.auto, in order, without blanks.
std::vector<std::string> CandidateNames(const AutoCodec& config);
// Whether the list is valid: not empty, only allowed codecs, those with more bytes first.
bool AreCandidates(const std::vector<std::string>& names);
// Whether the field exists in this configuration: false if it is in an unset member of a oneof.
bool Applies(const JobConfig& config, const std::string& path);

// Checks ranges and combinations of a configuration with filled-in defaults. Errors:
// INVALID_ARGUMENT, with field, value, and range or the other field.
absl::Status Validate(const JobConfig& config);

// The first half of Validate: checks that each number, bool and enum is in its range.
absl::Status CheckRanges(const JobConfig& config);

}  // namespace tug

#endif  // TUG_CONFIG_JOB_RULES_H_
