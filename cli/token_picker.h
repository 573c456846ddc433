#ifndef TUG_CLI_TOKEN_PICKER_H_
#define TUG_CLI_TOKEN_PICKER_H_

#include <cstdint>
#include <span>

namespace tug {

struct PickOptions {
  double temperature = 0.8;  // 0: always the likeliest
  uint32_t top_k = 40;       // choose among so many likeliest tokens; 0: among all
  uint64_t seed = 1;
};

// Draws the token that follows from its logits: softmax(logits / temperature) over the top k. A
// pure function of logits, options and `position` (of the drawn token in the text). REQUIRES:
// logits not empty, temperature >= 0.
int32_t PickToken(std::span<const float> logits, const PickOptions& options, uint64_t position);

}  // namespace tug

#endif  // TUG_CLI_TOKEN_PICKER_H_
