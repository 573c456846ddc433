#include "plan/traffic.h"

#include <bit>

#include "base/check.h"

namespace tug {

StepTraffic TrafficOf(Strategy strategy, double model_bytes, uint32_t workers, uint32_t servers) {
  TUG_CHECK(workers >= 1 && servers >= 1);
  const double phase = model_bytes * (workers - 1) / workers;
  switch (strategy) {
    case Strategy::kParameterServer:
      return {.worker_bytes = model_bytes, .server_bytes = model_bytes * workers / servers};
    case Strategy::kHalvingDoubling: {
      const uint32_t power = std::bit_floor(workers);
      const double halving = 2 * model_bytes * (power - 1) / power;
      return {.worker_bytes = power == workers ? halving : halving + model_bytes};
    }
    case Strategy::kRing:
    case Strategy::kZero1:
    case Strategy::kZero2:
      return {.worker_bytes = 2 * phase};
    case Strategy::kZero3:
      return {.worker_bytes = 3 * phase};
  }
  TUG_CHECK(false);
}

}  // namespace tug
