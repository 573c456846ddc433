// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/residual_parts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "proto/control.pb.h"

namespace tug {
namespace {

CheckpointPart PartOf(const ResidualOrder& order, uint64_t version) {
  CheckpointPart part;
  part.set_virtual_worker(order.virtual_worker);
  part.set_version(version);
  return part;
}

}  // namespace

CheckpointPart NewestPart(const ResidualOrder& order, absl::Duration pause) {
  CheckpointPart part = PartOf(order, order.versions.back());
  part.set_pause_seconds(absl::ToDoubleSeconds(pause));
  return part;
}

void ResidualParts::OnView(const View& view, uint32_t node_id) {
  for (const WorkerAssignment& place : view.workers()) {
    for (int i = 0; i < place.virtual_workers_size(); ++i) {
      const uint32_t virtual_worker = place.virtual_workers(i);
      if (place.node_id() == node_id) {
        newest_kept_.erase(virtual_worker);
        continue;
      }
      const std::optional<uint64_t> version = mode_.VersionAt(place.start_clocks(i));
      if (!version.has_value()) continue;
      uint64_t& newest = newest_kept_.try_emplace(virtual_worker, *version).first->second;
      newest = std::min(newest, *version);
      const auto parts = parts_.find(virtual_worker);
      if (parts != parts_.end()) parts->second.EraseAfter(newest);
    }
  }
}

void ResidualParts::Add(CheckpointPart part) {
  const auto newest = newest_kept_.find(part.virtual_worker());
  if (newest != newest_kept_.end() && part.version() > newest->second) return;
  PartReports& reports = parts_[part.virtual_worker()];
  reports.Add(std::move(part));
}

void ResidualParts::AddOlder(const ResidualOrder& order) {
  for (size_t i = 0; i + 1 < order.versions.size(); ++i) Add(PartOf(order, order.versions[i]));
}

void ResidualParts::AddTo(HeartbeatRequest& beat) const {
  for (const auto& [virtual_worker, reports] : parts_) {
    for (const CheckpointPart& part : reports.parts()) *beat.add_parts() = part;
  }
}

void ResidualParts::OnHeard(const HeartbeatRequest& sent) {
  for (const CheckpointPart& part : sent.parts()) {
    const auto reports = parts_.find(part.virtual_worker());
    if (reports != parts_.end()) reports->second.OnHeard(part.version());
  }
}

}  // namespace tug
