// SPDX-License-Identifier: Apache-2.0
// Early returns on errors, in functions that return absl::Status or absl::StatusOr<T>.
//
//   RETURN_IF_ERROR(file.Write(header));
//   ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(path));
//
// ASSIGN_OR_RETURN declares or assigns its left side, moving the value out. It expands to several
// statements: do not use it in an unbraced `if`. The left side must not contain a comma (use auto).
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expression)                                                \
  do {                                                                             \
    if (::absl::Status tug_status = (expression); !tug_status.ok()) [[unlikely]] { \
      return tug_status;                                                           \
    }                                                                              \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expression) \
  TUG_INTERNAL_ASSIGN(TUG_INTERNAL_NAME(tug_result_, __LINE__), lhs, expression)

// Implementation details of the macros above.
#define TUG_INTERNAL_ASSIGN(result, lhs, expression) \
  auto result = (expression);                        \
  if (!result.ok()) [[unlikely]] {                   \
    return std::move(result).status();               \
  }                                                  \
  lhs = *std::move(result)

#define TUG_INTERNAL_NAME(prefix, line) TUG_INTERNAL_PASTE(prefix, line)
#define TUG_INTERNAL_PASTE(prefix, line) prefix##line
