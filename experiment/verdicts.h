#ifndef TUG_EXPERIMENT_VERDICTS_H_
#define TUG_EXPERIMENT_VERDICTS_H_

// Whether cases are so much better than their baseline (`verdicts` of an experiment file). Pure,
// thread-safe.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment_results.h"

namespace tug {

enum class Answer { kYes, kNo, kNotClear };

struct CaseVerdict {
  size_t number = 0;               // of the case
  std::optional<size_t> baseline;  // none: it is one, or there is none
  std::optional<Answer> answer;    // none: there is nothing to compare yet
  std::optional<PairedComparison> compared;
  // Repeats of which the baseline has a value and the case, though it ran to its end, has none, or
  // one that is not finite: then the answer is no.
  size_t without_value = 0;
};

// Of each case; with `best_over` of each combination of the other axes, the case that counts.
std::vector<CaseVerdict> VerdictsOf(const ExperimentResults& results,
                                    const PlannedVerdict& verdict);

struct VerdictTable {
  std::string title;
  std::string text;  // what the answers mean
  // What the baseline has a value of in lines, other axes in columns; the first line has the
  // headings.
  std::vector<std::vector<std::string>> cells;
};
std::vector<VerdictTable> VerdictTables(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_VERDICTS_H_
