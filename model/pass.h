// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_PASS_H_
#define TUG_MODEL_PASS_H_

#include <cstdint>

#include "kernels/dropout.h"
#include "model/backend.h"
#include "model/model.h"
#include "model/op_profile.h"

namespace tug {

// State of the pass in progress, shared by all blocks of a model.
template <typename T>
struct Pass {
  Backend<T>& backend;
  OpProfile* profile;  // may be null
  MicroBatch batch = {};
  typename Backend<T>::Inputs inputs = {};  // the batch's arrays, in the backend's memory
  uint64_t targets = 0;                     // number of the batch's targets that count
  int64_t samples = 0;
  int64_t seq = 0;  // positions per sample: the context, fewer in Model::Logits
  float p = 0;      // probability of dropping an element; 0: no dropout

  int64_t rows() const { return samples * seq; }
  kernels::DropoutKey Key(uint32_t site) const {
    return {.seed = batch.dropout.seed,
            .step = batch.dropout.step,
            .sample = batch.dropout.first_sample,
            .site = site};
  }
  // Arguments of y = residual + dropout(x), all [rows of the pass][width].
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
