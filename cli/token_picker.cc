#include "cli/token_picker.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/philox.h"

namespace tug {

int32_t PickToken(std::span<const float> logits, const PickOptions& options, uint64_t position) {
  TUG_CHECK(!logits.empty());
  std::vector<int32_t> likeliest(logits.size());
  std::iota(likeliest.begin(), likeliest.end(), 0);
  const size_t kept =
      options.top_k == 0 ? logits.size() : std::min<size_t>(options.top_k, logits.size());
  std::partial_sort(
      likeliest.begin(), likeliest.begin() + static_cast<ptrdiff_t>(kept), likeliest.end(),
      [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  if (options.temperature == 0) return likeliest[0];

  std::vector<double> weights(kept);
  for (size_t i = 0; i < kept; ++i) {
    weights[i] = std::exp((logits[likeliest[i]] - logits[likeliest[0]]) / options.temperature);
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto bits =
      Philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0},
                 {static_cast<uint32_t>(options.seed),
                  static_cast<uint32_t>(options.seed >> 32) ^
                      (static_cast<uint32_t>(RandomPurpose::kSample) << 28)});
  double left = UniformFromBits(bits[0]) * total;
  for (size_t i = 0; i + 1 < kept; ++i) {
    if (left < weights[i]) return likeliest[i];
    left -= weights[i];
  }
  return likeliest[kept - 1];
}

}  // namespace tug
