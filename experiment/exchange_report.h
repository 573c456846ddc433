#ifndef TUG_EXPERIMENT_EXCHANGE_REPORT_H_
#define TUG_EXPERIMENT_EXCHANGE_REPORT_H_

#include <string>

#include "experiment/exchange_results.h"

namespace tug {

// The page of `tug experiment exchange`, all in one file (report_page.h): what is fastest, step
// times, the alpha-beta model with what was measured, bytes of each host, memory of workers and
// servers, what failed, and all figures. What was not measured is left out. Pure, thread-safe.
std::string ExchangeReportHtml(const ExchangeResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_REPORT_H_
