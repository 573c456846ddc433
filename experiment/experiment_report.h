#ifndef TUG_EXPERIMENT_EXPERIMENT_REPORT_H_
#define TUG_EXPERIMENT_EXPERIMENT_REPORT_H_

// The page of an experiment file. Functions are pure and thread-safe.

#include <string>
#include <vector>

#include "experiment/experiment_results.h"

namespace tug {

// One page that needs nothing else: the question, figures, tables, comparisons with the baseline,
// what failed, commands, and the raw rows.
std::string ExperimentReportHtml(const ExperimentResults& results);
// The same for docs/, without what only a page can have; `pictures`: file names of the figures.
std::string ExperimentReportMarkdown(const ExperimentResults& results,
                                     const std::vector<std::string>& pictures);

struct DrawnFigure {
  std::string title;
  std::string text;
  std::string svg;  // "": there is nothing to draw yet
};
std::vector<DrawnFigure> DrawFigures(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXPERIMENT_REPORT_H_
