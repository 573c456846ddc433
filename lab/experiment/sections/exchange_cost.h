// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_COST_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_COST_H_

// Cost of a step's exchange by the lectures' alpha-beta model. Pure, thread-safe.

#include <cstdint>

#include "collective/schedules/cost.h"
#include "lab/experiment/results/exchange_case.h"

namespace tug {

// Payload of a host in a step, by direction.
struct HostBytes {
  double sends = 0;
  double receives = 0;
};

struct ExchangeCost {
  // A worker's host, including a server on it; for a folded all-reduce, the busiest host.
  HostBytes worker;
  HostBytes server;  // a host with only a server; 0: none
  // Time with one phase after the other, as in the lectures: push, then pull; reduce-scatter, then
  // all-gather.
  double seconds = 0;
  // Time with as many messages, but links busy in both directions at once, as when each segment is
  // pulled once it is summed: the bytes of the busiest link in its busier direction. Equal to
  // `seconds` for rings, which use both directions all the time.
  double overlapped_seconds = 0;

  double BusiestBytes() const;
};

// Cost for a model of S = `bytes` in each of N workers, pushed and pulled in the same number of
// bytes, with one forward and one backward pass. All kinds except mixed use the formulas of
// plan/strategy.h (`servers` is its parameter server, ZeRO stages are its rings: a worker that
// pushes to each of N - 1 servers sends what a ring's reduce-scatter sends, in as many messages).
//
// Mixed, with k hosts more than the n workers': each server next to a worker has the part x of the
// bytes, each other one the part y, so that all links are equally busy in both directions:
//   x = (n - k) / (n^2 + k n - 2 k), y = 2 (n - 1) / (n^2 + k n - 2 k);  k >= n: x = 0, y = 1 / k
// A worker's host sends (1 - x) S + (n - 1) x S, another one n y S; both receive as much. A step
// takes
//   2 ((n + k - 1) alpha + max((1 - x), (n - 1) x, n y) S beta) + n max(x, y) S gamma,
// of which the beta term is only n y S beta if push and pull overlap: x and y are optimal for that.
// Paper: Jiang et al. 2020, "A Unified Architecture for Accelerating Distributed DNN Training in
// Heterogeneous GPU/CPU Clusters" (BytePS), section 4.1.
//
// Source of the comparison: the lectures' "Cross-Comparison" (alpha + n beta per message) and
// "Parameter Server Architecture" (shared bottleneck). REQUIRES: workers >= 2.
ExchangeCost CostOfExchange(const ExchangeCase& exchange, uint32_t workers, double bytes,
                            const LinkCost& link);

// BytePS's parts x and y. REQUIRES: workers >= 2, extra >= 1.
struct MixedParts {
  double beside = 0;
  double alone = 0;
};
MixedParts BytePsParts(uint32_t workers, uint32_t extra);

// Memory of a worker and the server next to it by the lectures, in bytes for FP32 (4 Psi each of
// weights, gradients, m and v): all-reduce 16 Psi; ZeRO 8 Psi + 8 Psi / N, 4 Psi + 12 Psi / N, 16
// Psi / N; mixed 8 Psi + 8 Psi x; a parameter server's worker 8 Psi. `model_bytes`: 4 Psi.
// REQUIRES: workers >= 2.
double LecturesHeldBytes(const ExchangeCase& exchange, uint32_t workers, double model_bytes);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_COST_H_
