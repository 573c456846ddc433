#ifndef TUG_EXPERIMENT_COMPRESSION_REPORT_H_
#define TUG_EXPERIMENT_COMPRESSION_REPORT_H_

#include <string>

#include "experiment/compression_results.h"

namespace tug {

// A page as report_page.h has it: the verdicts, step times by link, bytes of a step, losses against
// steps, bytes and time, and all figures as tables. Pure, thread-safe.
std::string CompressionReportHtml(const CompressionResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_COMPRESSION_REPORT_H_
