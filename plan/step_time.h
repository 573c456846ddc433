#ifndef TUG_PLAN_STEP_TIME_H_
#define TUG_PLAN_STEP_TIME_H_

#include <cstdint>

#include "collective/cost.h"
#include "plan/traffic.h"

namespace tug {

// Seconds in which N workers exchange a model of `model_bytes` once, by the alpha-beta model
// (collective/cost.h): a host sends one message at a time, and receives one.
//   kParameterServer  2 (max(N, S) alpha + max(1, N / S) Psi beta): push, then pull; the busier of
//   a
//                     worker's link, with a message to each server, and a server's, with one from
//                     each worker; and N / S Psi gamma for the sums
//   kRing             RingAllReduceSeconds (collective/ring.h)
//   kHalvingDoubling  HalvingDoublingAllReduceSeconds (collective/halving_doubling.h)
//   kZero1, kZero2    RingReduceScatterSeconds and RingAllGatherSeconds, so as kRing
//   kZero3            a second RingAllGatherSeconds
// Source: the lectures' "Cross-Comparison". Pure. REQUIRES: N, S >= 1.
double CommunicationSeconds(Strategy strategy, const LinkCost& link, double model_bytes,
                            uint32_t workers, uint32_t servers);

}  // namespace tug

#endif  // TUG_PLAN_STEP_TIME_H_
