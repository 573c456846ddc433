// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_LOADED_MODEL_H_
#define TUG_CLI_LOADED_MODEL_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu/thread_pool.h"
#include "base/memory/lease.h"
#include "kernels/bf16.h"
#include "model/model.h"
#include "proto/manifest.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// A model with a checkpoint's weights, for inference. Owned by one thread.
class LoadedModel {
 public:
  // `from`: a path for FindCheckpoint. Errors: those of FindCheckpoint, CheckpointReader,
  // CreateModel and CheckFinite.
  static absl::StatusOr<std::unique_ptr<LoadedModel>> Load(const std::string& from, int threads,
                                                           int max_micro_batch);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  const JobConfig& config() const { return manifest_.config(); }
  Model& model() { return *model_; }
  ThreadPool& pool() { return pool_; }
  // By block, in FP32.
  std::vector<std::span<const float>> weights() const;

 private:
  LoadedModel(std::string folder, Manifest manifest, int threads)
      : folder_(std::move(folder)), manifest_(std::move(manifest)), pool_(threads) {}

  void Bind(int block, const AlignedBuffer& weights);

  const std::string folder_;
  const Manifest manifest_;
  ThreadPool pool_;
  std::vector<AlignedBuffer> weights_;               // by block
  std::vector<std::vector<kernels::Bf16>> rounded_;  // by block, if workers pulled bf16
  std::unique_ptr<Model> model_;
};

// Adds --from, a path for FindCheckpoint.
void AddFromOption(CLI::App& command, std::string& from);

}  // namespace tug

#endif  // TUG_CLI_LOADED_MODEL_H_
