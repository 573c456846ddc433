// SPDX-License-Identifier: Apache-2.0
#include "model/transformer/finite_weights.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/sum.h"
#include "model/layout.h"
#include "proto/blocks.pb.h"

namespace tug {

absl::Status CheckFinite(const std::string& source, const BlockSpec& block, uint64_t begin,
                         std::span<const float> weights) {
  if (kernels::AllFinite(weights.data(), static_cast<int64_t>(weights.size()))) {
    return absl::OkStatus();
  }
  const auto bad = std::ranges::find_if(weights, [](float w) { return !std::isfinite(w); });
  uint64_t element = begin + static_cast<uint64_t>(bad - weights.begin());  // index in the block
  std::string tensor = block.name();
  for (const TensorSpec& spec : block.tensors()) {
    tensor = spec.name();
    if (element < ElementCount(spec)) break;
    element -= ElementCount(spec);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(source, ": element ", element, " of ", tensor, " is ", *bad,
                   ": the weights are damaged, or their training had diverged; use an earlier "
                   "checkpoint or another copy"));
}

}  // namespace tug
