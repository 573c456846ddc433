#ifndef TUG_EXPERIMENT_OFFLOAD_REPORT_H_
#define TUG_EXPERIMENT_OFFLOAD_REPORT_H_

#include <string>

#include "experiment/offload_results.h"

namespace tug {

// The page of `tug experiment offload`, all in one file (report_page.h): utilisation over time, the
// table, what failed. What was not measured is left out. Pure, thread-safe.
std::string OffloadReportHtml(const OffloadResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_OFFLOAD_REPORT_H_
