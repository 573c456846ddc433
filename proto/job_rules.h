#ifndef TUG_PROTO_JOB_RULES_H_
#define TUG_PROTO_JOB_RULES_H_

// What a valid job is, as two tables that can be read at a glance: FieldRules() has a row for every
// number, bool and enum of JobConfig (default, range), ValidityRules() one for every combination
// that does not hold. A new field or mode adds a row; job_rules_test.cc walks the descriptor and
// wants a row for each field.

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace tug {

// The default depends on other fields: see FillDefaults in job_config.cc.
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
  const char* other_field;  // nullptr: a rule about one field
  bool (*broken)(const JobConfig& config);
  const char* reason;  // and what to change
};

std::span<const FieldRule> FieldRules();        // field_rules.cc
std::span<const ValidityRule> ValidityRules();  // validity_rules.cc
// Of comm.push_codec.auto, in order, without blanks.
std::vector<std::string> CandidateNames(const AutoCodec& config);
// Whether each may be one of them, those with more bytes first, and there is one.
bool AreCandidates(const std::vector<std::string>& names);
// Whether the field is there: not one of a choice (oneof) that was not chosen.
bool Applies(const JobConfig& config, const FieldRule& rule);

// Checks a configuration whose defaults are filled in against both tables. Errors:
// INVALID_ARGUMENT, with field, value, and range or the other field.
absl::Status Validate(const JobConfig& config);

// The first half of it: that each number, bool and enum is in its range.
absl::Status CheckRanges(const JobConfig& config);

}  // namespace tug

#endif  // TUG_PROTO_JOB_RULES_H_
