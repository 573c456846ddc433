// SPDX-License-Identifier: Apache-2.0
#include "plan/strategy.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "collective/schedules/halving_doubling.h"
#include "collective/schedules/ring.h"

namespace tug {
namespace {

constexpr double kFp32Bytes = 4;

// Ring operations of a step.
struct Phases {
  double gradient_scatters = 0;
  double gradient_gathers = 0;
  double weight_gathers = 0;
};

StepTraffic RingTraffic(const Exchange& e, const Phases& phases) {
  const double bytes = (phases.gradient_scatters + phases.gradient_gathers) * e.gradient_bytes +
                       phases.weight_gathers * e.weight_bytes;
  const double sent = bytes * (e.workers - 1) / e.workers;
  return {.sends = sent, .receives = sent};
}

double RingSeconds(const Exchange& e, const LinkCost& link, const Phases& phases) {
  const auto gradients = static_cast<uint64_t>(std::llround(e.gradient_bytes));
  const auto weights = static_cast<uint64_t>(std::llround(e.weight_bytes));
  return phases.gradient_scatters * RingReduceScatterSeconds(link, e.workers, gradients) +
         phases.gradient_gathers * RingAllGatherSeconds(link, e.workers, gradients) +
         phases.weight_gathers * RingAllGatherSeconds(link, e.workers, weights);
}

Phases OfRing(uint64_t) { return {.gradient_scatters = 1, .gradient_gathers = 1}; }
Phases OfZero1(uint64_t) { return {.gradient_scatters = 1, .weight_gathers = 1}; }
Phases OfZero2(uint64_t m) {
  return {.gradient_scatters = static_cast<double>(m), .weight_gathers = 1};
}
Phases OfZero3(uint64_t m) {
  const auto each = static_cast<double>(m);
  return {.gradient_scatters = each, .weight_gathers = 2 * each};
}

template <Phases (*kPhases)(uint64_t micro_batches)>
StepTraffic TrafficOfRings(const Exchange& e) {
  return RingTraffic(e, kPhases(e.micro_batches));
}
template <Phases (*kPhases)(uint64_t micro_batches)>
double SecondsOfRings(const Exchange& e, const LinkCost& link) {
  return RingSeconds(e, link, kPhases(e.micro_batches));
}

std::string AllReduceFormula(const Exchange&) { return "2 (N-1)/N Psi"; }
std::string Zero2Formula(const Exchange& e) {
  return e.micro_batches == 1 ? "2 (N-1)/N Psi" : "(m+1) (N-1)/N Psi";
}
std::string Zero3Formula(const Exchange& e) {
  return e.micro_batches == 1 ? "3 (N-1)/N Psi" : "3 m (N-1)/N Psi";
}
std::string HalvingFormula(const Exchange& e) {
  return std::has_single_bit(e.workers) ? "2 (N-1)/N Psi" : "2 (P-1)/P Psi + Psi";
}
std::string PushFormula(const Exchange& e) { return e.pushes == 1 ? "Psi" : "Psi a push"; }

StepTraffic HalvingTraffic(const Exchange& e) {
  const uint32_t power = std::bit_floor(e.workers);
  const double halving = 2 * e.gradient_bytes * (power - 1) / power;
  const double sent = power == e.workers ? halving : halving + e.gradient_bytes;
  return {.sends = sent, .receives = sent};
}

double HalvingSeconds(const Exchange& e, const LinkCost& link) {
  return HalvingDoublingAllReduceSeconds(link, e.workers,
                                         static_cast<uint64_t>(std::llround(e.gradient_bytes)));
}

// GPUs per server.
double GpusOfAServer(const Exchange& e) {
  TUG_CHECK(e.servers >= 1);
  return static_cast<double>(e.workers) * e.parts / e.servers;
}

StepTraffic PushAndPull(const Exchange& e) {
  const double pushed = e.gradient_bytes * e.pushes;
  return {.sends = pushed,
          .receives = e.weight_bytes,
          .server_receives = GpusOfAServer(e) * pushed,
          .server_sends = GpusOfAServer(e) * e.weight_bytes};
}

double PushAndPullSeconds(const Exchange& e, const LinkCost& link) {
  const StepTraffic traffic = PushAndPull(e);
  const double messages = std::max<double>(static_cast<double>(e.workers) * e.parts, e.servers);
  const double push = messages * e.pushes * link.alpha +
                      std::max(traffic.sends, traffic.server_receives) * link.beta;
  const double pull =
      messages * link.alpha + std::max(traffic.receives, traffic.server_sends) * link.beta;
  return push + pull + traffic.server_receives * link.gamma;
}

WorkerShare AllWhole(const StateBytes& states) { return {.whole = states.All()}; }

constexpr std::array<StrategyRow, 6> kStrategies = {{
    {Strategy::kHalvingDoubling, "halving-doubling", /*memory_name=*/nullptr, AllWhole,
     HalvingFormula, HalvingTraffic, HalvingSeconds},
    {Strategy::kRing, "ring", "data parallel", AllWhole, AllReduceFormula, TrafficOfRings<OfRing>,
     SecondsOfRings<OfRing>},
    {Strategy::kZero1, "ZeRO-1", "ZeRO-1",
     [](const StateBytes& states) {
       return WorkerShare{states.parameters + states.gradients, states.Optimizer()};
     },
     AllReduceFormula, TrafficOfRings<OfZero1>, SecondsOfRings<OfZero1>},
    {Strategy::kZero2, "ZeRO-2", "ZeRO-2",
     [](const StateBytes& states) {
       return WorkerShare{states.parameters, states.gradients + states.Optimizer()};
     },
     Zero2Formula, TrafficOfRings<OfZero2>, SecondsOfRings<OfZero2>},
    {Strategy::kZero3, "ZeRO-3", "ZeRO-3",
     [](const StateBytes& states) { return WorkerShare{.divided = states.All()}; }, Zero3Formula,
     TrafficOfRings<OfZero3>, SecondsOfRings<OfZero3>},
    {Strategy::kParameterServer, "parameter server", "parameter server's worker",
     [](const StateBytes& states) {
       return WorkerShare{.whole = states.parameters + states.gradients};
     },
     PushFormula, PushAndPull, PushAndPullSeconds},
}};

}  // namespace

const std::array<StrategyRow, 6>& Strategies() { return kStrategies; }

const StrategyRow& RowOf(Strategy strategy) { return kStrategies[static_cast<size_t>(strategy)]; }

double ParameterServerBytes(const StateBytes& states, double parameters, uint32_t servers) {
  TUG_CHECK(servers >= 1);
  return (kFp32Bytes + states.first_moment + states.second_moment) * parameters / servers;
}

}  // namespace tug
