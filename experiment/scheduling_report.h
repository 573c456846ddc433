#ifndef TUG_EXPERIMENT_SCHEDULING_REPORT_H_
#define TUG_EXPERIMENT_SCHEDULING_REPORT_H_

#include <string>

#include "experiment/scheduling_results.h"

namespace tug {

// A page that needs nothing else: no script, no font, no picture from elsewhere; light or dark as
// the reader's browser is. Settings, step times as bars and as a table, and for each case the
// timelines of its policies one under another, the fluid schedule of the bound last. Pure,
// thread-safe.
std::string SchedulingReportHtml(const SchedulingResults& results);

// Step times as bars, an <svg> of width 1120: for each case and policy computing, exposed
// communication, the range of the steps, and the bound. "" without cases.
std::string StepBarsSvg(const SchedulingResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SCHEDULING_REPORT_H_
