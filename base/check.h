// SPDX-License-Identifier: Apache-2.0
// Checks of the program's own invariants. A failed check is a bug in this program: it prints file
// and line, condition and message to stderr, then aborts. For external failures (peers, files,
// configuration) return an absl::Status instead, see base/status_macros.h.
//
//   TUG_CHECK(offset < size) << "segment " << id;
//   TUG_CHECK_EQ(grad.size(), weights.size());
//   TUG_CHECK_OK(queue.Close());
//
// Checks are active in every build. Operands are evaluated once; the message only on failure.
// Thread-safe.
#pragma once

#include <optional>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/standard_error.h"

namespace tug::internal {

// Collects the streamed message; its destructor ends the process.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const std::string& what) {
    stream_ << file << ':' << line << ": check failed: " << what << ' ';
  }
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  [[noreturn]] ~CheckFailure() { Die(stream_.str()); }

  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Text of a failed comparison, with both values; none if the comparison holds.
template <typename A, typename B, typename Compare>
std::optional<std::string> FailedComparison(const char* text, const A& a, const B& b,
                                            Compare compare) {
  if (compare(a, b)) [[likely]] {
    return std::nullopt;
  }
  std::ostringstream out;
  out << text << " (" << a << " vs " << b << ')';
  return out.str();
}

inline std::optional<std::string> FailedStatus(const char* text, const absl::Status& status) {
  if (status.ok()) [[likely]] {
    return std::nullopt;
  }
  return std::string(text) + " is " + status.ToString();
}

template <typename T>
std::optional<std::string> FailedStatus(const char* text, const absl::StatusOr<T>& result) {
  return FailedStatus(text, result.status());
}

}  // namespace tug::internal

// A check is a single `switch` statement, so it nests in an unbraced if/else.
#define TUG_CHECK(condition)                       \
  switch (0)                                       \
  case 0:                                          \
  default:                                         \
    if (static_cast<bool>(condition)) [[likely]] { \
    } else /* NOLINT */                            \
      ::tug::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#define TUG_CHECK_OK(expression) \
  TUG_INTERNAL_CHECK(::tug::internal::FailedStatus(#expression, (expression)))

#define TUG_CHECK_EQ(a, b) TUG_INTERNAL_COMPARE(==, a, b)
#define TUG_CHECK_NE(a, b) TUG_INTERNAL_COMPARE(!=, a, b)
#define TUG_CHECK_LT(a, b) TUG_INTERNAL_COMPARE(<, a, b)
#define TUG_CHECK_LE(a, b) TUG_INTERNAL_COMPARE(<=, a, b)
#define TUG_CHECK_GT(a, b) TUG_INTERNAL_COMPARE(>, a, b)
#define TUG_CHECK_GE(a, b) TUG_INTERNAL_COMPARE(>=, a, b)

// Implementation details of the macros above.
#define TUG_INTERNAL_COMPARE(op, a, b)                  \
  TUG_INTERNAL_CHECK(::tug::internal::FailedComparison( \
      #a " " #op " " #b, (a), (b),                      \
      [](const auto& tug_left, const auto& tug_right) { return tug_left op tug_right; }))

#define TUG_INTERNAL_CHECK(failure)                              \
  switch (0)                                                     \
  case 0:                                                        \
  default:                                                       \
    if (auto tug_failure = (failure); !tug_failure) [[likely]] { \
    } else /* NOLINT */                                          \
      ::tug::internal::CheckFailure(__FILE__, __LINE__, *tug_failure).stream()
