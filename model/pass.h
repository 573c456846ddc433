#ifndef TUG_MODEL_PASS_H_
#define TUG_MODEL_PASS_H_

#include <cstdint>

#include "kernels/dropout.h"
#include "model/backend.h"
#include "model/model.h"
#include "model/op_profile.h"

namespace tug {

// What all blocks of a model need to know of the pass under way.
template <typename T>
struct Pass {
  Backend<T>& backend;
  OpProfile* profile;  // nullptr: nobody looks
  MicroBatch batch = {};
  typename Backend<T>::Inputs inputs = {};  // the batch's arrays, for operations
  uint64_t targets = 0;                     // of the batch that count
  int64_t samples = 0;
  int64_t seq = 0;  // positions of a sample: the context, less in Model::Logits
  float p = 0;      // of dropping an element; 0: no dropout

  int64_t rows() const { return samples * seq; }
  kernels::DropoutKey Key(uint32_t site) const {
    return {.seed = batch.dropout.seed,
            .step = batch.dropout.step,
            .sample = batch.dropout.first_sample,
            .site = site};
  }
  // y = residual + dropout(x), all [rows of the pass][width].
  kernels::DropoutAddArgs<T> Dropout(int64_t width, uint32_t site, const T* x, const T* residual,
                                     T* y) const {
    return {.samples = samples,
            .elements_per_sample = seq * width,
            .width = width,
            .x = x,
            .residual = residual,
            .p = p,
            .key = Key(site),
            .y = y};
  }
};

}  // namespace tug

#endif  // TUG_MODEL_PASS_H_
