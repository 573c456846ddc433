// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_TRAINING_TEXT_H_
#define TUG_LAB_EXPERIMENT_TRAINING_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace tug {

inline constexpr uint64_t kTrainingTextSeed = 1;

// Sentences of a made-up grammar, in ASCII: the same `size_bytes` bytes for the same seed on every
// machine. A model learns something from it within a few dozen steps. Pure.
std::string TrainingText(uint64_t seed, size_t size_bytes);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_TRAINING_TEXT_H_
