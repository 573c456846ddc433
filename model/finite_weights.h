#ifndef TUG_MODEL_FINITE_WEIGHTS_H_
#define TUG_MODEL_FINITE_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace tug {

class BlockSpec;

// Whether weights can be computed with: elements begin, begin + 1, ... of a block. `source`: where
// they come from. Errors: FAILED_PRECONDITION, naming the tensor of the first that is not finite.
absl::Status CheckFinite(const std::string& source, const BlockSpec& block, uint64_t begin,
                         std::span<const float> weights);

}  // namespace tug

#endif  // TUG_MODEL_FINITE_WEIGHTS_H_
