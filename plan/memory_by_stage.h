#ifndef TUG_PLAN_MEMORY_BY_STAGE_H_
#define TUG_PLAN_MEMORY_BY_STAGE_H_

#include <cstdint>

namespace tug {

// What Adam's training keeps of every parameter beside activations: bytes a parameter.
// Source: the lectures' "GPU HBM Content During Training"; Rajbhandari et al. 2020 (ZeRO), section
// 3.1: mixed precision keeps 16 Psi, of which K = 12 are the optimizer's.
struct StateBytes {
  double parameters = 0;  // that forward and backward passes read
  double gradients = 0;
  double master = 0;         // FP32 weights beside the parameters
  double first_moment = 0;   // m
  double second_moment = 0;  // v

  double Optimizer() const { return master + first_moment + second_moment; }  // K
  double All() const { return parameters + gradients + Optimizer(); }
};

// 16-bit parameters and gradients, FP32 master weights.
inline constexpr StateBytes kMixedPrecision = {
    .parameters = 2, .gradients = 2, .master = 4, .first_moment = 4, .second_moment = 4};
// FP32 throughout: the parameters are the master weights.
inline constexpr StateBytes kFullPrecision = {
    .parameters = 4, .gradients = 4, .master = 0, .first_moment = 4, .second_moment = 4};
// Tugboat's parameter server: a worker has the weights and a gradient for each virtual worker in
// FP32 (4 + 4), and no optimizer.
inline constexpr double kTugboatWorkerBytes = 8;
// And its servers: weights, m and v (12), the weights of the version before, which pulls still read
// (4), and the sum of the gradients (4). server/memory.h has what buffers add, and other settings.
inline constexpr double kTugboatServerBytes = 20;

// How much of that each of N data-parallel workers has a part of only.
enum class Stage { kDataParallel, kZero1, kZero2, kZero3 };

// Bytes of a worker. With P, G, K of `states` (2, 2, 12):
//   kDataParallel  (P + G + K) Psi            16 Psi
//   kZero1         (P + G) Psi + K Psi / N     4 Psi + 12 Psi / N
//   kZero2         P Psi + (G + K) Psi / N     2 Psi + 14 Psi / N
//   kZero3         (P + G + K) Psi / N        16 Psi / N
// Source: ZeRO, figure 1; the lectures' "How to compute the storage stage". Pure. REQUIRES: N >= 1.
double WorkerStateBytes(Stage stage, const StateBytes& states, double parameters, uint32_t workers);

// Parameter server: a worker has parameters and gradients, (P + G) Psi; S servers share FP32
// weights, m and v, (4 + 4 + 4) Psi / S each. Pure. REQUIRES: S >= 1.
double ParameterServerWorkerBytes(const StateBytes& states, double parameters);
double ParameterServerBytes(const StateBytes& states, double parameters, uint32_t servers);

}  // namespace tug

#endif  // TUG_PLAN_MEMORY_BY_STAGE_H_
