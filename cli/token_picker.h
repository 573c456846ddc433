#ifndef TUG_CLI_TOKEN_PICKER_H_
#define TUG_CLI_TOKEN_PICKER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tug {

struct PickOptions {
  double temperature = 0.8;  // 0: always the likeliest
  uint32_t top_k = 40;       // choose among so many likeliest tokens; 0: among all
  // Then among the fewest of the likeliest whose probabilities sum to at least this (one at least);
  // 1: among all. Paper: Holtzman et al. 2020, "The curious case of neural text degeneration",
  // eq. 2.
  double top_p = 1;
  uint64_t seed = 1;
};

struct Candidate {
  int32_t token;
  double probability;  // of the candidates together: 1
};

// The tokens to choose among, likeliest first, of equally likely ones the smaller token first:
// softmax(logits / temperature) over the top k, cut to the top p. REQUIRES: logits not empty,
// temperature >= 0.
std::vector<Candidate> CandidatesOf(std::span<const float> logits, const PickOptions& options);

// Draws the token that follows from its logits. A pure function of logits, options and `position`
// (of the drawn token in the text). The same requirements.
int32_t PickToken(std::span<const float> logits, const PickOptions& options, uint64_t position);

}  // namespace tug

#endif  // TUG_CLI_TOKEN_PICKER_H_
