#ifndef TUG_MODEL_PASS_H_
#define TUG_MODEL_PASS_H_

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/dropout.h"
#include "model/model.h"
#include "model/op_profile.h"

namespace tug {

// What all blocks of a model need to know of the pass under way.
struct Pass {
  ThreadPool& pool;
  OpProfile* profile;  // nullptr: nobody looks
  MicroBatch batch = {};
  int64_t samples = 0;
  int64_t seq = 0;  // positions of a sample: the context, less in Model::Logits
  float p = 0;      // of dropping an element; 0: no dropout

  int64_t rows() const { return samples * seq; }
  // [samples], for attention over the tokens of the batch; nullptr: no padding.
  const int32_t* lengths() const { return batch.lengths.empty() ? nullptr : batch.lengths.data(); }
  kernels::DropoutKey Key(uint32_t site) const {
    return {.seed = batch.dropout.seed,
            .step = batch.dropout.step,
            .sample = batch.dropout.first_sample,
            .site = site};
  }
};

}  // namespace tug

#endif  // TUG_MODEL_PASS_H_
