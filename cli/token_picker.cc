// SPDX-License-Identifier: Apache-2.0
#include "cli/token_picker.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/philox.h"

namespace tug {
namespace {

double TotalOf(std::span<const Candidate> candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& c) { return sum + c.probability; });
}

// Keeps the fewest first candidates that sum to at least top_p of the total.
void CutToTopP(double top_p, std::vector<Candidate>& candidates) {
  if (top_p >= 1) return;
  const double wanted = top_p * TotalOf(candidates);
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates.size() && (kept == 0 || sum < wanted)) {
    sum += candidates[kept++].probability;
  }
  candidates.resize(kept);
}

}  // namespace

std::vector<Candidate> CandidatesOf(std::span<const float> logits, const PickOptions& options) {
  TUG_CHECK(!logits.empty());
  std::vector<int32_t> likeliest(logits.size());
  std::iota(likeliest.begin(), likeliest.end(), 0);
  const bool one = options.temperature == 0;
  const size_t top_k = one ? 1 : options.top_k == 0 ? logits.size() : options.top_k;
  const size_t kept = std::min(top_k, logits.size());
  std::partial_sort(
      likeliest.begin(), likeliest.begin() + static_cast<ptrdiff_t>(kept), likeliest.end(),
      [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  if (one) return {{likeliest[0], 1.0}};

  std::vector<Candidate> candidates;
  for (size_t i = 0; i < kept; ++i) {
    const int32_t token = likeliest[i];
    candidates.push_back(
        {token, std::exp((logits[token] - logits[likeliest[0]]) / options.temperature)});
  }
  CutToTopP(options.top_p, candidates);
  const double total = TotalOf(candidates);
  for (Candidate& candidate : candidates) candidate.probability /= total;
  return candidates;
}

int32_t PickToken(std::span<const float> logits, const PickOptions& options, uint64_t position) {
  const std::vector<Candidate> candidates = CandidatesOf(logits, options);
  const auto bits =
      Philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0},
                 {static_cast<uint32_t>(options.seed),
                  static_cast<uint32_t>(options.seed >> 32) ^
                      (static_cast<uint32_t>(RandomPurpose::kSample) << 28)});
  double left = UniformFromBits(bits[0]);
  for (const Candidate& candidate : candidates) {
    if (left < candidate.probability) return candidate.token;
    left -= candidate.probability;
  }
  return candidates.back().token;
}

}  // namespace tug
