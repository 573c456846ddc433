// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_ANSWER_H_
#define TUG_LAB_EXPERIMENT_RESULTS_ANSWER_H_

// The sentence at the top of a report, which answers the question of the experiment.
//
//   1. The deciding measure is time_to_loss if the file lists it, else that of the first verdict,
//      else the first measure. If no case reached the loss, the answer states that, and the next
//      measure decides.
//   2. Contenders differ on the axes of the baseline (and of `best_over`), or on all axes without a
//      baseline. Every combination of the other axes is a setting with its own best contender.
//   3. Up to three settings are listed one by one, each with the ratio of its best contender to the
//      baseline. Of more settings each contender's number of clear wins is stated: those in which
//      its interval overlaps with no other contender's.
//   4. What the comparison does not show follows: steps of different meaning, failed runs.
//
// "bsp reached the target loss of 0.6 first, in 41.0 s, 1.20 times as fast as ssp(2); ASP makes 4
// updates for each of BSP's, since each worker's push is an update of its own: compare time and
// tokens, not steps."
//
// Pure, thread-safe.

#include <string>

#include "lab/experiment/results/experiment_results.h"

namespace tug {

// Begins with the name of a case or a lower-case word. Begins with "after N of M runs" if some runs
// have not ended. Empty: no run has ended.
std::string AnswerOf(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_ANSWER_H_
