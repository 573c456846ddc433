// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_TRACE_TRACE_LIMIT_H_
#define TUG_COORDINATOR_TRACE_TRACE_LIMIT_H_

#include <cstdint>

namespace tug {

// Limit on the size of trace files.
inline constexpr uint64_t kTraceLimitBytes = uint64_t{1} << 30;

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_TRACE_LIMIT_H_
