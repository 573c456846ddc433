// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_RULED_FIELDS_H_
#define TUG_PROCESS_RULED_FIELDS_H_

#include <span>
#include <string>

#include "absl/status/status.h"

namespace tug {

// A field of the job that an experiment sets itself, because its report or its figures depend on
// it.
struct RuledField {
  const char* path;  // a trailing dot matches all fields of a message
  const char* remedy;
};

// `overrides`: of --set. Errors: INVALID_ARGUMENT, naming the first override of a ruled field.
// Pure.
absl::Status CheckOverrides(std::span<const std::string> overrides,
                            std::span<const RuledField> ruled);

}  // namespace tug

#endif  // TUG_PROCESS_RULED_FIELDS_H_
