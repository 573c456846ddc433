// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_RECORDED_GRADIENTS_H_
#define TUG_LAB_RECORDED_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu/thread_pool.h"
#include "blocks/codec_choice.h"
#include "blocks/segment_table.h"
#include "compression/codec.h"
#include "data/sampler.h"
#include "kernels/bf16.h"
#include "lab/recorded/reexecution.h"
#include "model/model.h"
#include "proto/job.pb.h"
#include "worker/gradients/gradient_clip.h"

namespace tug {

// Recomputes the gradients that a job's workers pushed, bit for bit, wherever each virtual worker
// ran: computed and clipped as in worker/training_loop.h, and decoded from what the exchange makes
// of them in pushes and pulls. Without local steps, which do not exist where every push is an
// update, and without error feedback. Owned by one thread.
class Gradients {
 public:
  // `config`: resolved. Errors: those of CreateModel. REQUIRES: sampler, table and pool outlive
  // this object.
  static absl::StatusOr<std::unique_ptr<Gradients>> Create(const JobConfig& config,
                                                           const SegmentTable& table,
                                                           const Sampler& sampler,
                                                           ThreadPool& pool);

  // Implements ComputeGradient.
  PushedGradient Compute(uint32_t virtual_worker, uint64_t clock,
                         std::span<const std::span<const float>> weights);

  const BlockTable& blocks() const { return model_->blocks(); }

 private:
  Gradients(const JobConfig& config, const SegmentTable& table, const Sampler& sampler)
      : config_(config),
        table_(table),
        sampler_(sampler),
        clip_(config.optimizer(), table.num_blocks()) {}

  void BindPulled(uint32_t block);
  // Replaces the segments of a pushed block by what the lanes decode.
  void Decode(uint32_t virtual_worker, uint64_t clock, uint32_t block, std::span<float> pushed);
  // Runs forward and backward of one micro-batch; adds to the gradient from the second one on.
  LossSums Pass(uint32_t virtual_worker, uint64_t clock, uint32_t micro_batch);

  const JobConfig config_;
  const SegmentTable& table_;
  const Sampler& sampler_;
  std::unique_ptr<Model> model_;
  GradientClip clip_;
  std::optional<CodecChoice> codecs_;
  std::vector<std::byte> frame_;
  CodecScratch scratch_;
  std::vector<std::vector<float>> pulled_;           // by block, as pulled by workers
  std::vector<std::vector<kernels::Bf16>> rounded_;  // used instead if the model computes in bf16
  std::vector<std::vector<float>> gradient_;         // by block
  SampleBatch batch_;
};

}  // namespace tug

#endif  // TUG_LAB_RECORDED_GRADIENTS_H_
