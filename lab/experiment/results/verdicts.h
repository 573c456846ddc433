// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_VERDICTS_H_
#define TUG_LAB_EXPERIMENT_RESULTS_VERDICTS_H_

// Whether cases are better than their baseline by a margin (`verdicts` of an experiment file).
// Pure, thread-safe.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/results/experiment_results.h"

namespace tug {

enum class Answer { kYes, kNo, kNotClear };

struct CaseVerdict {
  size_t number = 0;               // of the case
  std::optional<size_t> baseline;  // none: the case is the baseline, or there is none
  std::optional<Answer> answer;    // none: nothing to compare yet
  std::optional<PairedComparison> compared;
  // Repeats in which the baseline has a finite value and the case, though it completed, has none or
  // one that is not finite. If above 0, the answer is kNo.
  size_t without_value = 0;
};

// One per case; with `best_over`, one per combination of the other axes, for its best case.
std::vector<CaseVerdict> VerdictsOf(const ExperimentResults& results,
                                    const PlannedVerdict& verdict);

struct VerdictTable {
  std::string title;
  std::string text;  // meaning of the answers
  // Rows: values of the baseline's axes. Columns: values of the other axes. The first row has the
  // headings.
  std::vector<std::vector<std::string>> cells;
};
// Leaves out verdicts without a comparison.
std::vector<VerdictTable> VerdictTables(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_VERDICTS_H_
