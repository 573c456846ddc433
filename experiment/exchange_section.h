#ifndef TUG_EXPERIMENT_EXCHANGE_SECTION_H_
#define TUG_EXPERIMENT_EXCHANGE_SECTION_H_

// The section EXCHANGE of an experiment's page: ways to make weights of gradients side by side,
// with the alpha-beta model (exchange_cost.h), bytes of each host, and memory beside its formulas.
// "" where no case is one of them (exchange_case.h). Pure, thread-safe.

#include <string>

#include "experiment/experiment_results.h"

namespace tug {

std::string ExchangeSectionHtml(const ExperimentResults& results);
// Findings and tables.
std::string ExchangeSectionMarkdown(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_SECTION_H_
