// What the pushes of a simulated worker leave out: into checkpoints, and back.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulate/worker_node.h"

namespace tug {

void SimulatedWorker::SaveResiduals(uint32_t index, const std::vector<uint64_t>& due) {
  if (due.empty()) return;
  const uint32_t virtual_worker = virtual_workers_[index];
  const std::vector<SegmentResidual> copy = exchange_->CopyResiduals(virtual_worker);
  CheckpointPart part;
  part.set_virtual_worker(virtual_worker);
  for (const uint64_t version : due) {
    part.set_version(version);
    if (version == due.back() && !copy.empty()) {
      part.set_file(absl::StrCat("run ", world_.store.runs, ", timeline ", timeline_, ", step ",
                                 version, ", virtual worker ", virtual_worker, " of node ",
                                 node_id_));
    }
    parts_[virtual_worker].Add(part);
  }
  if (copy.empty()) return;
  SimulatedStore::Residual& stored = world_.store.residuals[part.file()];
  stored.virtual_worker = virtual_worker;
  for (const SegmentResidual& residual : copy) {
    const std::span<const float> values = residual.values.floats();
    stored.segments[residual.segment].assign(values.begin(), values.end());
  }
}

void SimulatedWorker::SaveResidualsAt(uint32_t index, uint64_t clock) {
  if (!due_residuals_.has_value()) return;
  SaveResiduals(index,
                due_residuals_->AtClock(virtual_workers_[index], clock, orders_.final_version));
}

void SimulatedWorker::SaveLastResiduals() {
  if (!due_residuals_.has_value()) return;
  for (uint32_t i = 0; i < virtual_workers_.size(); ++i) {
    SaveResiduals(i, due_residuals_->AtEnd(virtual_workers_[i], orders_.final_version));
  }
}

void SimulatedWorker::ForgetWhatOthersTake(const View& view) {
  if (SyncModeOf(config_.sync().policy()).update_per_push) return;
  for (const WorkerAssignment& place : view.workers()) {
    if (place.node_id() == node_id_) continue;
    for (int i = 0; i < place.virtual_workers_size(); ++i) {
      const auto reports = parts_.find(place.virtual_workers(i));
      if (reports != parts_.end()) reports->second.EraseAfter(place.start_clocks(i));
    }
  }
}

void SimulatedWorker::RestoreResiduals(const View& view, const WorkerPlace& place) {
  if (!due_residuals_.has_value() || view.restore_path().empty()) return;
  const Manifest& manifest = world_.store.checkpoints.at(view.start_version());
  for (size_t i = 0; i < place.virtual_workers.size(); ++i) {
    if (place.start_clocks[i] != view.start_version()) continue;
    for (const ManifestFile& file : manifest.files()) {
      const auto stored = world_.store.residuals.find(file.name());
      if (stored == world_.store.residuals.end()) continue;
      if (stored->second.virtual_worker != place.virtual_workers[i]) continue;
      std::vector<SegmentResidual> residuals;
      for (const auto& [segment, values] : stored->second.segments) {
        residuals.push_back({segment, AlignedBuffer(values.size() * sizeof(float))});
        std::copy(values.begin(), values.end(), residuals.back().values.floats().begin());
      }
      exchange_->RestoreResiduals(place.virtual_workers[i], std::move(residuals));
    }
  }
}

}  // namespace tug
