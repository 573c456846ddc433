// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_FIELD_RULES_H_
#define TUG_CONFIG_FIELD_RULES_H_

// Default and range of every number, bool and enum of a job, as the options in proto/job.proto
// state them. Pure; thread-safe.

#include <span>
#include <string>

namespace tug {

class FieldRule;  // proto/field_rule.proto

struct JobField {
  std::string path;       // "train.steps"
  const FieldRule& rule;  // owned by the descriptor
};

// All fields with a rule, in the order of job.proto.
std::span<const JobField> JobFields();

// Whether a number, bool or enum is finite and in the range.
bool InRange(const FieldRule& rule, double value);

// "1..1e9 optimizer steps", "(0, 10]". REQUIRES: the rule has both ends.
std::string RangeText(const FieldRule& rule);

// "Default 1000, range 1..1e9 optimizer steps.", without the parts that the rule lacks.
std::string RuleText(const FieldRule& rule);

}  // namespace tug

#endif  // TUG_CONFIG_FIELD_RULES_H_
