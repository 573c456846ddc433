// SPDX-License-Identifier: Apache-2.0
#include "model/gpu/multi_gpu_model.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "model/gpu/gpu_peers.h"
#include "model/gpu/staged_model.h"
#include "model/replicated_model.h"

namespace tug {
namespace {

// Facts about one GPU's model; each entry is written by its own thread.
struct Made {
  absl::Status status;
  std::string device;
  uint64_t device_bytes = 0;
  GpuPeers* peers = nullptr;  // owned by the model
};

std::string Name(int gpu) { return absl::StrCat("GPU ", gpu); }

// Error of the whole model, after `error` of one of several.
absl::Status ErrorOf(const std::vector<int>& gpus, const std::vector<Made>& made,
                     const absl::Status& error) {
  const auto lacks = [](const Made& of) { return absl::IsUnavailable(of.status); };
  const auto missing = std::find_if(made.begin(), made.end(), lacks);
  if (missing == made.end() && absl::IsUnavailable(error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the usable GPUs cannot be connected: ", error.message()));
  }
  if (missing == made.end() || std::all_of(made.begin(), made.end(), lacks)) return error;
  const auto other = std::find_if_not(made.begin(), made.end(), lacks);
  return absl::FailedPreconditionError(absl::StrCat(
      Name(gpus[static_cast<size_t>(missing - made.begin())]), " cannot be used, but ",
      Name(gpus[static_cast<size_t>(other - made.begin())]), " can: ", missing->status.message()));
}

// "4 x NVIDIA H200, 139 GiB".
std::string DevicesText(const std::vector<Made>& made) {
  std::vector<std::string> parts;
  for (auto from = made.begin(); from != made.end();) {
    const auto to = std::find_if(from, made.end(),
                                 [&](const Made& other) { return other.device != from->device; });
    parts.push_back(absl::StrCat(to - from, " x ", from->device));
    from = to;
  }
  return absl::StrJoin(parts, " and ");
}

}  // namespace

absl::StatusOr<GpuModel> NewMultiGpuModel(const std::vector<int>& gpus,
                                          const GpuModelOptions& options,
                                          std::shared_ptr<GpuGroup> group) {
  TUG_CHECK(!gpus.empty());
  if (gpus.size() == 1) return NewStagedModel(gpus.front(), options);
  TUG_CHECK(options.model.profile == nullptr) << "a profile covers one GPU";
  const int count = static_cast<int>(gpus.size());
  GpuModelOptions of_each = options;
  of_each.model.max_micro_batch = (options.model.max_micro_batch + count - 1) / count;
  of_each.encoder = nullptr;  // each GPU has only the sum of its part
  if (group == nullptr) group = NewGpuGroup(static_cast<uint32_t>(count));
  const auto made = std::make_shared<std::vector<Made>>(gpus.size());
  ReplicatedModelOptions replicas;
  for (const int gpu : gpus) replicas.names.push_back(Name(gpu));
  replicas.make = [=](int number) -> absl::StatusOr<std::unique_ptr<Model>> {
    Made& of = (*made)[static_cast<size_t>(number)];
    const int gpu = gpus[static_cast<size_t>(number)];
    std::unique_ptr<GpuPeers> peers = group->NewPeers(static_cast<uint32_t>(number), gpu);
    of.peers = peers.get();
    absl::StatusOr<GpuModel> model = NewStagedModel(gpu, of_each, std::move(peers));
    of.status = model.status();
    RETURN_IF_ERROR(of.status);
    of.device = model->device;
    of.device_bytes = model->device_bytes;
    return std::move(model->model);
  };
  replicas.join = [=](int number) { return (*made)[static_cast<size_t>(number)].peers->Join(); };
  replicas.abort = [=] { group->Abort(); };
  absl::StatusOr<std::unique_ptr<Model>> model = NewReplicatedModel(std::move(replicas));
  if (!model.ok()) return ErrorOf(gpus, *made, model.status());
  return GpuModel{.model = *std::move(model),
                  .device = DevicesText(*made),
                  .device_bytes = made->front().device_bytes};
}

}  // namespace tug
