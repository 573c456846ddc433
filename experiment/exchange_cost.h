#ifndef TUG_EXPERIMENT_EXCHANGE_COST_H_
#define TUG_EXPERIMENT_EXCHANGE_COST_H_

// What a step's exchange costs by the lectures' alpha-beta model. Pure, thread-safe.

#include <cstdint>

#include "collective/cost.h"
#include "experiment/exchange_case.h"

namespace tug {

// Payload of a host in a step, one way.
struct HostBytes {
  double sends = 0;
  double receives = 0;
};

struct ExchangeCost {
  // A worker's host, with the server beside the worker, if there is one; of a folded all-reduce the
  // busiest.
  HostBytes worker;
  HostBytes server;  // a host with a server alone; 0: there is none
  // One phase after the other, as the lectures have it: push, then pull; reduce-scatter, then
  // all-gather.
  double seconds = 0;
  // As many messages, but links are busy both ways at once, as where each segment is pulled when it
  // is summed: the bytes of the busiest link, in its busier direction. The same for rings, which
  // use both directions all the time.
  double overlapped_seconds = 0;

  double BusiestBytes() const;
};

// Of one model of S = `bytes` in each of N workers, both pushed and pulled in as many bytes, with
// one forward and one backward pass. All but mixed: the formulas of plan/strategy.h (`servers` its
// parameter server, ZeRO stages its rings: a worker that pushes to each of N - 1 servers sends what
// a ring's reduce-scatter sends in as many messages).
//
// Mixed, k hosts more than the n workers': each server beside a worker has the part x of the bytes,
// each other one the part y, so that all links are equally busy both ways:
//   x = (n - k) / (n^2 + k n - 2 k), y = 2 (n - 1) / (n^2 + k n - 2 k);  k >= n: x = 0, y = 1 / k
// A worker's host sends (1 - x) S + (n - 1) x S, another one n y S, and as much comes to it;
//   2 ((n + k - 1) alpha + max((1 - x), (n - 1) x, n y) S beta) + n max(x, y) S gamma,
// of which n y S beta stays where push and pull overlap: that is what the parts are best for.
// Paper: Jiang et al. 2020, "A Unified Architecture for Accelerating Distributed DNN Training in
// Heterogeneous GPU/CPU Clusters" (BytePS), section 4.1.
//
// Source of the comparison: the lectures' "Cross-Comparison" (alpha + n beta a message) and
// "Parameter Server Architecture" (shared bottleneck). REQUIRES: workers >= 2.
ExchangeCost CostOfExchange(const ExchangeCase& exchange, uint32_t workers, double bytes,
                            const LinkCost& link);

// BytePS's parts x and y. REQUIRES: workers >= 2, extra >= 1.
struct MixedParts {
  double beside = 0;
  double alone = 0;
};
MixedParts BytePsParts(uint32_t workers, uint32_t extra);

// What a worker and the server beside it hold by the lectures, bytes, in FP32 (4 Psi each of
// weights, gradients, m and v): all-reduce 16 Psi, ZeRO 8 Psi + 8 Psi / N, 4 Psi + 12 Psi / N, 16
// Psi / N; mixed 8 Psi + 8 Psi x; a parameter server's worker 8 Psi. `model_bytes`: 4 Psi.
// REQUIRES: workers
// >= 2.
double LecturesHeldBytes(const ExchangeCase& exchange, uint32_t workers, double model_bytes);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_COST_H_
