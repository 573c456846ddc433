// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_TRANSFORMER_FINITE_WEIGHTS_H_
#define TUG_MODEL_TRANSFORMER_FINITE_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace tug {

class BlockSpec;

// Checks that weights are finite: elements begin, begin + 1, ... of a block. `source`: origin of
// the weights, for the error. Errors: FAILED_PRECONDITION, naming the tensor of the first element
// that is not finite.
absl::Status CheckFinite(const std::string& source, const BlockSpec& block, uint64_t begin,
                         std::span<const float> weights);

}  // namespace tug

#endif  // TUG_MODEL_TRANSFORMER_FINITE_WEIGHTS_H_
