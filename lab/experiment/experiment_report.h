// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_EXPERIMENT_REPORT_H_
#define TUG_LAB_EXPERIMENT_EXPERIMENT_REPORT_H_

// Reports on an experiment file. Functions are pure and thread-safe.

#include <string>
#include <vector>

#include "lab/experiment/results/experiment_results.h"

namespace tug {

// A self-contained page: question, answer (lab/experiment/results/answer.h), figures, tables,
// comparisons with the baseline, failures, commands, and the raw rows.
std::string ExperimentReportHtml(const ExperimentResults& results);
// The report as Markdown for docs/, without what only a page can have. `pictures`: file names of
// the figures.
std::string ExperimentReportMarkdown(const ExperimentResults& results,
                                     const std::vector<std::string>& pictures);

struct DrawnFigure {
  std::string title;
  std::string text;
  std::string svg;  // "": nothing to draw yet
};
std::vector<DrawnFigure> DrawFigures(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_EXPERIMENT_REPORT_H_
