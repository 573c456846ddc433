#ifndef TUG_PLAN_TRAFFIC_H_
#define TUG_PLAN_TRAFFIC_H_

#include <array>
#include <cstdint>

namespace tug {

// How N data-parallel workers exchange gradients and weights.
enum class Strategy { kParameterServer, kRing, kHalvingDoubling, kZero1, kZero2, kZero3 };

struct StrategyName {
  Strategy strategy;
  const char* name;
  const char* sends;  // of a worker, in a step; P: the largest power of two in N
};
inline constexpr std::array<StrategyName, 6> kStrategies = {{
    {Strategy::kParameterServer, "parameter server", "Psi"},
    {Strategy::kRing, "ring all-reduce", "2 (N-1)/N Psi"},
    {Strategy::kHalvingDoubling, "halving-doubling", "2 (P-1)/P Psi, + Psi if N > P"},
    {Strategy::kZero1, "ZeRO-1", "2 (N-1)/N Psi"},
    {Strategy::kZero2, "ZeRO-2", "2 (N-1)/N Psi"},
    {Strategy::kZero3, "ZeRO-3", "3 (N-1)/N Psi"},
}};

// Bytes of one host in a step; it sends and receives equally many.
struct StepTraffic {
  double worker_bytes = 0;
  double server_bytes = 0;  // of each parameter server
};

// For a model of `model_bytes` (Psi elements in the format that is exchanged):
//   kParameterServer  a worker pushes Psi and pulls Psi; each of S servers on hosts of their own
//                     takes and gives N Psi / S
//   kRing             2 (N - 1) / N Psi: reduce-scatter and all-gather
//   kHalvingDoubling  2 (P - 1) / P Psi, P the largest power of two in N; if N is not P, ranks too
//                     many hand in Psi before and get Psi afterwards, so that their partners, the
//                     busiest, send and receive Psi more (collective/fold.h)
//   kZero1, kZero2    2 (N - 1) / N Psi: gradients reduce-scattered, weights all-gathered
//   kZero3            3 (N - 1) / N Psi: weights gathered forward and again backward, gradients
//                     reduce-scattered
// As N grows 2 Psi and 3 Psi. The gradient is exchanged once a step, whatever its micro-batches.
// Source: the lectures' "Cross-Comparison" and "With stage 3: total volume 3 Psi"; Rajbhandari et
// al. 2020, section 7. Pure. REQUIRES: N, S >= 1.
StepTraffic TrafficOf(Strategy strategy, double model_bytes, uint32_t workers, uint32_t servers);

}  // namespace tug

#endif  // TUG_PLAN_TRAFFIC_H_
