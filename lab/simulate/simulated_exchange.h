// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_SIMULATED_EXCHANGE_H_
#define TUG_LAB_SIMULATE_SIMULATED_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "exchange/exchange.h"
#include "exchange/open_requests.h"
#include "lab/simulate/node.h"
#include "lab/simulate/planted_lane.h"

namespace tug {

// A worker's exchange in virtual time, with its endpoint in the simulated network: the counterpart
// of ExchangeClient in a process.
class SimulatedExchange {
 public:
  // For a worker in a view, connected to its lanes. `on_mail`: called when messages wait for Poll.
  SimulatedExchange(SimulatedWorld& world, const JobConfig& config, uint64_t job, const View& view,
                    uint32_t node_id, std::function<void()> on_mail);

  void SetView(const View& view);
  void SetSchedule(const ExchangeSchedule& schedule);
  void SetCarried(CarriedRequest carried);
  void Push(PushRequest request);
  void Pull(PullRequest request);
  void GiveUpPull(uint32_t block);
  // Processes the waiting messages.
  void Poll();
  void Tick();

  const OpenRequests& open() const { return open_; }
  Exchange& machine() { return *exchange_; }
  const Exchange& machine() const { return *exchange_; }
  void Collect(SimulationResult& result) const;

 private:
  ExchangeSinks Sinks();

  SimulatedWorld& world_;
  const JobConfig& config_;
  const PeerId self_;
  PlantedWorker planted_;
  OpenRequests open_;
  uint64_t unreceived_ = 0;  // with frees_gradients: pushes whose gradient is kept
  uint64_t peak_unreceived_ = 0;
  const bool frees_gradients_;
  std::unique_ptr<SimulatedTransport> transport_;
  std::unique_ptr<Exchange> exchange_;
};

// Gradient of a fake computation of a block: it pulls the weights towards a target that differs by
// virtual worker and clock, and depends on the bits of the weights. Adds it `times` times to `out`.
// May be poisoned (SimulationOptions).
void AddSimulatedGradient(const SimulationOptions& options, uint32_t virtual_worker, uint64_t clock,
                          uint32_t block, std::span<const float> weights, float times,
                          std::span<float> out);

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_SIMULATED_EXCHANGE_H_
