// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/simulated_exchange.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "blocks/view_lanes.h"
#include "config/placement_mode.h"

namespace tug {

SimulatedExchange::SimulatedExchange(SimulatedWorld& world, const JobConfig& config, uint64_t job,
                                     const View& view, uint32_t node_id,
                                     std::function<void()> on_mail)
    : world_(world),
      config_(config),
      self_(WorkerPeer(node_id)),
      planted_(world.options.plant),
      open_(world.table.num_blocks(), PlacementModeOf(config).frees_gradients),
      frees_gradients_(PlacementModeOf(config).frees_gradients),
      transport_(world.network.NewEndpoint(self_, std::move(on_mail))) {
  ExchangeOptions options = ExchangeOptionsOf(config, job, view, self_);
  if (world.options.plant == PlantedBug::kPatience) {
    options.comm.set_resend_ms(50 * options.comm.resend_ms());
  }
  exchange_ = std::make_unique<Exchange>(std::move(options), world.table, Sinks());
  TUG_CHECK(ConnectToLanes(view, self_, *transport_).ok());
}

ExchangeSinks SimulatedExchange::Sinks() {
  return {.send =
              [this](Outgoing m) {
                planted_.Change(m);
                transport_->Send(std::move(m)).IgnoreError();
              },
          .pulled = [this](BlockPulled e) { open_.OnEvent(std::move(e), world_.time.Now()); },
          .committed =
              [this](PushCommitted e) {
                const absl::Status kept = open_.OnEvent(e, world_.time.Now());
                TUG_CHECK(kept.ok()) << kept.ToString();
              },
          .received =
              [this](PushReceived e) {
                open_.OnEvent(e);
                --unreceived_;
              },
          .deferred = [this](PushDeferred e) { open_.OnEvent(e); }};
}

void SimulatedExchange::SetView(const View& view) {
  TUG_CHECK(ConnectToLanes(view, self_, *transport_).ok());
  exchange_->SetView(ViewRequestOf(view, self_, config_), world_.time.Now());
}

void SimulatedExchange::SetSchedule(const ExchangeSchedule& schedule) {
  exchange_->SetSchedule(schedule, world_.time.Now());
}

void SimulatedExchange::SetCarried(CarriedRequest carried) {
  exchange_->SetCarried(carried, world_.time.Now());
}

void SimulatedExchange::Push(PushRequest request) {
  if (frees_gradients_) peak_unreceived_ = std::max(peak_unreceived_, ++unreceived_);
  open_.OnPush(request.block, request.virtual_worker, world_.time.Now());
  exchange_->Push(std::move(request), world_.time.Now());
}

void SimulatedExchange::Pull(PullRequest request) {
  open_.OnPull(request.block, world_.time.Now());
  exchange_->Pull(std::move(request), world_.time.Now());
}

void SimulatedExchange::GiveUpPull(uint32_t block) {
  exchange_->GiveUpPull(block);
  open_.Forget(block);
}

void SimulatedExchange::Poll() {
  while (transport_->mail() > 0) {
    transport_->Poll(absl::ZeroDuration(),
                     [&](Message message) { exchange_->OnMessage(message, world_.time.Now()); });
  }
}

void SimulatedExchange::Tick() { exchange_->OnTick(world_.time.Now()); }

void SimulatedExchange::Collect(SimulationResult& result) const {
  const ExchangeCounters counters = exchange_->counters();
  result.resent += counters.resent;
  result.peak_push_bytes = std::max(result.peak_push_bytes, counters.most_outstanding_bytes);
  result.pushed_bytes += counters.pushed_bytes;
  result.peak_unreceived = std::max(result.peak_unreceived, peak_unreceived_);
}

void AddSimulatedGradient(const SimulationOptions& options, uint32_t virtual_worker, uint64_t clock,
                          uint32_t block, std::span<const float> weights, float times,
                          std::span<float> out) {
  const float of_weights = options.gradient_of_weights ? 0.5f : 0.0f;
  const SimulatedGradients own(virtual_worker, clock, block);
  for (size_t e = 0; e < weights.size(); ++e) {
    out[e] += times * (weights[e] * of_weights + own[e]);
  }
  const bool poisoned = block == 0 && clock == options.poisoned_clock &&
                        virtual_worker == options.poisoned_virtual_worker;
  if (poisoned) out[weights.size() / 2] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace tug
