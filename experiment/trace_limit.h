#ifndef TUG_EXPERIMENT_TRACE_LIMIT_H_
#define TUG_EXPERIMENT_TRACE_LIMIT_H_

#include <cstdint>

namespace tug {

// The largest trace file that is read.
inline constexpr uint64_t kTraceLimitBytes = uint64_t{1} << 30;

}  // namespace tug

#endif  // TUG_EXPERIMENT_TRACE_LIMIT_H_
