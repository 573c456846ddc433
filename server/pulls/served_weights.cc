// SPDX-License-Identifier: Apache-2.0
#include "server/pulls/served_weights.h"

#include <algorithm>

namespace tug {

ServedWeights::Worker& ServedWeights::WorkerOf(PeerId worker) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) return *found->second;
  if (workers_.size() >= options_.max_workers) {
    workers_.erase(std::min_element(
        workers_.begin(), workers_.end(),
        [](const auto& a, const auto& b) { return a.second->served < b.second->served; }));
  }
  std::unique_ptr<Worker>& made = workers_[worker];
  made = std::make_unique<Worker>();
  made->segments.resize(table_.size());
  return *made;
}

void ServedWeights::Note(const WireHeader& pull, uint32_t segment, uint64_t version, bool mixed,
                         std::span<const float> weights) {
  Worker& worker = WorkerOf(pull.sender);
  worker.served = ++served_;
  Served& served = worker.segments[segment];
  if (served.any && pull.clock < served.clock) return;  // a repeat of an older pull
  const bool again = served.any && served.clock == pull.clock;
  const bool other_cut = again && served.first_segment != pull.first_segment;
  served.mixed = mixed || other_cut || (again && served.mixed);
  served.any = true;
  served.first_segment = pull.first_segment;
  served.clock = pull.clock;
  served.version = version;
  if (!options_.keep_weights) return;
  if (served.weights.size_bytes() == 0) served.weights = AlignedBuffer(weights.size_bytes());
  std::copy(weights.begin(), weights.end(), served.weights.floats().begin());
}

const ServedWeights::Served* ServedWeights::Find(PeerId worker, uint32_t segment) const {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return nullptr;
  const Served& served = found->second->segments[segment];
  return served.any ? &served : nullptr;
}

bool ServedWeights::IsExact(PeerId worker, uint64_t clock, uint32_t first, uint32_t count) const {
  const Served* const of_first = Find(worker, first);
  for (uint32_t id = first; id < first + count; ++id) {
    const Served* const served = Find(worker, id);
    if (served == nullptr || served->mixed || served->clock != clock ||
        served->first_segment != of_first->first_segment) {
      return false;
    }
  }
  return true;
}

std::span<const float> ServedWeights::Weights(PeerId worker, uint32_t segment,
                                              uint64_t version) const {
  const Served* const served = Find(worker, segment);
  if (served == nullptr || served->version != version) return {};
  return served->weights.floats();
}

}  // namespace tug
