#ifndef TUG_OPTIMIZER_ADAMW_H_
#define TUG_OPTIMIZER_ADAMW_H_

#include <cstdint>
#include <span>

#include "kernels/bf16.h"
#include "proto/job.pb.h"

namespace tug {

// One segment's update by AdamW with the job's schedule. Immutable, thread-safe.
class AdamW {
 public:
  // `config` has all fields filled.
  explicit AdamW(const OptimizerConfig& config) : config_(config) {}

  // Update number `version` (0-based: makes version + 1 out of version; Adam's t is version + 1,
  // counting skipped updates). `gradient` is the unscaled sum and is multiplied by
  // `gradient_scale`. All spans are as long as the segment; `weights_in` and `weights_out` are
  // equal or apart. `weights_out_bf16` also gets weights_out, rounded to bf16 (kernels/bf16.h),
  // unless it is empty.
  void Update(uint64_t version, bool weight_decay, float gradient_scale,
              std::span<const float> gradient, std::span<const float> weights_in,
              std::span<float> weights_out, std::span<float> m, std::span<float> v,
              std::span<kernels::Bf16> weights_out_bf16 = {}) const;

 private:
  const OptimizerConfig config_;
};

}  // namespace tug

#endif  // TUG_OPTIMIZER_ADAMW_H_
