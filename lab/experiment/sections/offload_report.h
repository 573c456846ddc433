// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_REPORT_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_REPORT_H_

#include <string>

#include "lab/experiment/sections/offload_results.h"

namespace tug {

// The self-contained page of `tug experiment offload` (lab/experiment/charts/report_page.h):
// utilisation over time, the table, failures. Leaves out what was not measured. Pure, thread-safe.
std::string OffloadReportHtml(const OffloadResults& results);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_REPORT_H_
