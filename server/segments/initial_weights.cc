// SPDX-License-Identifier: Apache-2.0
#include "server/segments/initial_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "blocks/segment_table.h"

namespace tug {
namespace {

// Four independent standard normal numbers: those of elements 4 * quad .. 4 * quad + 3.
std::array<double, 4> NormalQuad(uint64_t seed, uint32_t block, uint64_t quad) {
  const std::array<uint32_t, 4> bits =
      Philox4x32({static_cast<uint32_t>(quad), static_cast<uint32_t>(quad >> 32), block,
                  static_cast<uint32_t>(RandomPurpose::kInit)},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  std::array<double, 4> normal;
  for (int pair = 0; pair < 2; ++pair) {
    const double radius = std::sqrt(-2.0 * std::log(double{UniformFromBits(bits[2 * pair])}));
    const double angle = 2.0 * std::numbers::pi * double{UniformFromBits(bits[2 * pair + 1])};
    normal[2 * pair] = radius * std::cos(angle);
    normal[2 * pair + 1] = radius * std::sin(angle);
  }
  return normal;
}

}  // namespace

void FillInitialWeights(const BlockSpec& spec, uint32_t block, uint64_t seed, uint64_t begin,
                        std::span<float> out) {
  const uint64_t end = begin + out.size();
  uint64_t tensor_begin = 0;
  for (const TensorSpec& tensor : spec.tensors()) {
    const uint64_t tensor_end = tensor_begin + TensorElements(tensor);
    const uint64_t first = std::max(begin, tensor_begin);
    const uint64_t last = std::min(end, tensor_end);
    std::array<double, 4> normal{};
    for (uint64_t e = first; e < last; ++e) {
      if (tensor.init_std() == 0) {
        out[e - begin] = tensor.init_mean();
        continue;
      }
      if (e == first || e % 4 == 0) normal = NormalQuad(seed, block, e / 4);
      out[e - begin] = static_cast<float>(tensor.init_mean() + tensor.init_std() * normal[e % 4]);
    }
    tensor_begin = tensor_end;
  }
}

}  // namespace tug
