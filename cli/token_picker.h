// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_TOKEN_PICKER_H_
#define TUG_CLI_TOKEN_PICKER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tug {

struct PickOptions {
  double temperature = 0.8;  // 0: always the likeliest
  uint32_t top_k = 40;       // choose among the k likeliest tokens; 0: among all
  // Then among the smallest set of likeliest candidates whose probabilities sum to at least this
  // (at least one); 1: among all. Paper: Holtzman et al. 2020, "The curious case of neural text
  // degeneration", eq. 2.
  double top_p = 1;
  uint64_t seed = 1;
};

struct Candidate {
  int32_t token;
  double probability;  // all candidates sum to 1
};

// Candidates to choose from, likeliest first, ties by smaller token: softmax(logits / temperature)
// over the top k, cut to the top p. REQUIRES: logits not empty, temperature >= 0.
std::vector<Candidate> CandidatesOf(std::span<const float> logits, const PickOptions& options);

// Draws the next token from its logits. A pure function of logits, options and `position` (of the
// drawn token in the text). REQUIRES: as CandidatesOf.
int32_t PickToken(std::span<const float> logits, const PickOptions& options, uint64_t position);

}  // namespace tug

#endif  // TUG_CLI_TOKEN_PICKER_H_
