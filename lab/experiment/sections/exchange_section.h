// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_SECTION_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_SECTION_H_

// The section EXCHANGE of an experiment's page: ways to exchange side by side, with the alpha-beta
// model (exchange_cost.h), the bytes of each host, and memory with its formulas. "" if no case is
// one of them (lab/experiment/results/exchange_case.h). Pure, thread-safe.

#include <string>

#include "lab/experiment/results/experiment_results.h"

namespace tug {

std::string ExchangeSectionHtml(const ExperimentResults& results);
// Findings and tables only.
std::string ExchangeSectionMarkdown(const ExperimentResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_SECTION_H_
