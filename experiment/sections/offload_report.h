// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPERIMENT_SECTIONS_OFFLOAD_REPORT_H_
#define TUG_EXPERIMENT_SECTIONS_OFFLOAD_REPORT_H_

#include <string>

#include "experiment/sections/offload_results.h"

namespace tug {

// The self-contained page of `tug experiment offload` (experiment/charts/report_page.h):
// utilisation over time, the table, failures. Leaves out what was not measured. Pure, thread-safe.
std::string OffloadReportHtml(const OffloadResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SECTIONS_OFFLOAD_REPORT_H_
