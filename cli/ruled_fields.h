#ifndef TUG_CLI_RULED_FIELDS_H_
#define TUG_CLI_RULED_FIELDS_H_

#include <span>
#include <string>

#include "absl/status/status.h"

namespace tug {

// A field of the job that an experiment sets itself, since its report says something about it, or
// its figures rest on it.
struct RuledField {
  const char* path;  // with a dot at the end, all in the message
  const char* remedy;
};

// `overrides`: of --set. Errors: INVALID_ARGUMENT, naming the first that is of a ruled field. Pure.
absl::Status CheckOverrides(std::span<const std::string> overrides,
                            std::span<const RuledField> ruled);

}  // namespace tug

#endif  // TUG_CLI_RULED_FIELDS_H_
