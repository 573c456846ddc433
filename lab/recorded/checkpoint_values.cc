// SPDX-License-Identifier: Apache-2.0
#include "lab/recorded/checkpoint_values.h"

#include <bit>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "huggingface/weights_source.h"
#include "server/segments/initial_weights.h"

namespace tug {
namespace {

// Sets the tensor of a block's element, and the index within the tensor.
void Locate(const BlockSpec& block, uint64_t element, Difference& difference) {
  for (const TensorSpec& tensor : block.tensors()) {
    const uint64_t elements = TensorElements(tensor);
    if (element < elements) {
      difference.tensor = absl::StrCat(block.name(), "/", tensor.name());
      difference.element = element;
      return;
    }
    element -= elements;
  }
}

}  // namespace

absl::StatusOr<std::vector<std::vector<float>>> StartWeights(const JobConfig& config,
                                                             const BlockTable& blocks,
                                                             const SegmentTable& table) {
  std::optional<WeightsSource> source;
  if (!config.train().init_from().empty()) {
    ASSIGN_OR_RETURN(source, WeightsSource::Open(config.train().init_from()));
    RETURN_IF_ERROR(source->Check(config, blocks));
  }
  std::vector<std::vector<float>> weights;
  for (uint32_t s = 0; s < table.size(); ++s) {
    const Segment& place = table.segment(s);
    const BlockSpec& block = blocks.blocks(static_cast<int>(place.block));
    std::vector<float>& part = weights.emplace_back(place.elements());
    if (source.has_value()) {
      RETURN_IF_ERROR(source->ReadRange(block, place.begin, place.end, part));
    } else {
      FillInitialWeights(block, place.block, config.seed(), place.begin, part);
    }
  }
  return weights;
}

std::string DifferenceText(const Difference& d) {
  return absl::StrFormat("element %d of %s: %s %.9g in the checkpoint, %.9g computed", d.element,
                         d.tensor, d.what, d.recorded, d.computed);
}

absl::StatusOr<std::optional<Difference>> FirstDifference(const CheckpointReader& checkpoint,
                                                          const BlockTable& blocks,
                                                          const SegmentTable& table,
                                                          Reexecution& computed) {
  std::vector<float> recorded;
  for (uint32_t s = 0; s < table.size(); ++s) {
    const Segment& place = table.segment(s);
    const BlockSpec& block = blocks.blocks(static_cast<int>(place.block));
    recorded.resize(place.elements());
    struct Kind {
      char kind;
      const char* what;
      std::span<const float> values;
    };
    for (const Kind& kind :
         {Kind{'w', "weights", computed.weights(s)}, Kind{'m', "mean", computed.m(s)},
          Kind{'v', "mean square", computed.v(s)}}) {
      if (kind.values.empty()) continue;
      RETURN_IF_ERROR(
          checkpoint.ReadRange(block.name(), place.begin, place.end, kind.kind, recorded));
      for (uint64_t i = 0; i < recorded.size(); ++i) {
        if (std::bit_cast<uint32_t>(recorded[i]) == std::bit_cast<uint32_t>(kind.values[i])) {
          continue;
        }
        Difference difference{
            .what = kind.what, .recorded = recorded[i], .computed = kind.values[i]};
        Locate(block, place.begin + i, difference);
        return difference;
      }
    }
  }
  return std::nullopt;
}

}  // namespace tug
