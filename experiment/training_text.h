#ifndef TUG_EXPERIMENT_TRAINING_TEXT_H_
#define TUG_EXPERIMENT_TRAINING_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace tug {

// Sentences of made-up grammar, ASCII: the same `size_bytes` bytes for the same seed everywhere. A
// model learns something from it within a few dozen steps. Pure.
std::string TrainingText(uint64_t seed, size_t size_bytes);

}  // namespace tug

#endif  // TUG_EXPERIMENT_TRAINING_TEXT_H_
