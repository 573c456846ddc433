// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_STRATEGY_H_
#define TUG_PLAN_STRATEGY_H_

#include <array>
#include <cstdint>
#include <string>

#include "collective/schedules/cost.h"
#include "plan/state_bytes.h"

namespace tug {

// How N data-parallel workers divide a model's states, gradients and weights: a worker's memory,
// and the bytes and time of a step. All functions are pure.
enum class Strategy { kHalvingDoubling, kRing, kZero1, kZero2, kZero3, kParameterServer };

// Bytes per parameter of a worker: whole x Psi + divided x Psi / N.
struct WorkerShare {
  double whole = 0;
  double divided = 0;

  double Bytes(double parameters, uint32_t workers) const {
    return whole * parameters + divided * parameters / workers;
  }
};

// Data exchanged in a step. With tensor and pipeline parallelism a worker is t x p GPUs, each with
// a part of the model, and each exchanges its part with its peers in the other workers.
struct Exchange {
  double gradient_bytes = 0;  // of a GPU's part of the model
  double weight_bytes = 0;
  uint32_t workers = 1;        // N
  uint32_t parts = 1;          // t x p
  uint64_t micro_batches = 1;  // m, per worker
  uint32_t servers = 1;        // parameter server: S in total, on separate hosts
  uint32_t pushes = 1;         // parameter server: separate gradients that a GPU pushes
};

// Bytes per step of a GPU and of a server.
struct StepTraffic {
  double sends = 0;     // per GPU
  double receives = 0;  // per GPU
  double server_receives = 0;
  double server_sends = 0;
};

// With P, G, K bytes per parameter of parameters, gradients and optimizer (2, 2, 12), G' and W
// bytes of all gradients and weights as exchanged (lectures: both 2 Psi), and a ring's
// reduce-scatter or all-gather sending (N - 1) / N of its buffer:
//   kRing             (P + G + K) Psi; gradients twice: reduce-scatter and all-gather
//   kHalvingDoubling  same memory; 2 (P - 1) / P G', P the largest power of two in N; if N is not
//   P,
//                     the extra ranks send G' to a partner first and get the sum at the end, so
//                     that their partners, the busiest, send and receive G' more
//                     (collective/schedules/fold.h)
//   kZero1            (P + G) Psi + K Psi / N; gradients reduce-scattered, weights all-gathered
//   kZero2            P Psi + (G + K) Psi / N; no whole gradient is kept between micro-batches, so
//                     gradients are reduce-scattered m times, weights all-gathered once
//   kZero3            (P + G + K) Psi / N; each micro-batch gathers weights forward and again
//                     backward, and reduce-scatters gradients
//   kParameterServer  (P + G) Psi; a GPU pushes its gradients and pulls its weights, a server
//                     receives and sends those of all N t p GPUs, divided by S
// So for one micro-batch 2 Psi, and 3 Psi with kZero3, as N grows. Seconds follow collective/'s
// formulas; with a parameter server and one push, push, then pull:
//   max(N t p, S) alpha + max(1, N t p / S) bytes beta, each, and N t p / S G' gamma for the sums
// (the busier of a GPU's link, with one message per server, and a server's). Source: ZeRO, figure 1
// and section 7; the lectures' "How to compute the storage stage", "Cross-Comparison", "With stage
// 3: total volume 3 Psi".
struct StrategyRow {
  Strategy strategy;
  const char* name;
  const char* memory_name;  // null: same as another row
  WorkerShare (*share)(const StateBytes& states);
  // Bytes that a GPU sends, in Psi = its elements; contains m if there are several micro-batches.
  std::string (*formula)(const Exchange& exchange);
  StepTraffic (*traffic)(const Exchange& exchange);
  double (*seconds)(const Exchange& exchange, const LinkCost& link);
};
// In the order of Strategy.
const std::array<StrategyRow, 6>& Strategies();
const StrategyRow& RowOf(Strategy strategy);

// Bytes of each of S parameter servers for a whole model: FP32 weights, m and v, (4 + 4 + 4) Psi /
// S. REQUIRES: S >= 1.
double ParameterServerBytes(const StateBytes& states, double parameters, uint32_t servers);

}  // namespace tug

#endif  // TUG_PLAN_STRATEGY_H_
