#include "plan/step_time.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "collective/halving_doubling.h"
#include "collective/ring.h"

namespace tug {
namespace {

double ParameterServerSeconds(const LinkCost& link, double model_bytes, double workers,
                              double servers) {
  const double one_way = std::max(workers, servers) * link.alpha +
                         std::max(1.0, workers / servers) * model_bytes * link.beta;
  return 2 * one_way + workers / servers * model_bytes * link.gamma;
}

}  // namespace

double CommunicationSeconds(Strategy strategy, const LinkCost& link, double model_bytes,
                            uint32_t workers, uint32_t servers) {
  TUG_CHECK(workers >= 1 && servers >= 1);
  const auto bytes = static_cast<uint64_t>(std::llround(model_bytes));
  switch (strategy) {
    case Strategy::kParameterServer:
      return ParameterServerSeconds(link, model_bytes, workers, servers);
    case Strategy::kHalvingDoubling:
      return HalvingDoublingAllReduceSeconds(link, workers, bytes);
    case Strategy::kRing:
      return RingAllReduceSeconds(link, workers, bytes);
    case Strategy::kZero1:
    case Strategy::kZero2:
      return RingReduceScatterSeconds(link, workers, bytes) +
             RingAllGatherSeconds(link, workers, bytes);
    case Strategy::kZero3:
      return RingReduceScatterSeconds(link, workers, bytes) +
             2 * RingAllGatherSeconds(link, workers, bytes);
  }
  TUG_CHECK(false);
}

}  // namespace tug
