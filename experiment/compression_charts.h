#ifndef TUG_EXPERIMENT_COMPRESSION_CHARTS_H_
#define TUG_EXPERIMENT_COMPRESSION_CHARTS_H_

// The pictures of `tug experiment compression` (compression_report.h): an <svg> each, or "" where
// there is nothing to draw. A codec has the same colour in all of them. Pure, thread-safe.

#include <string>

#include "experiment/compression_results.h"

namespace tug {

// How long a step takes, and how much of it is waiting for weights, on each link: every link with
// an axis of its own.
std::string StepTimesSvg(const CompressionResults& results);
// Payloads pushed and pulled in a step.
std::string StepBytesSvg(const CompressionResults& results);
// Losses of the trainings that count (loss_panels.h), against steps, bytes and wall time as they
// were measured; and in a row below against the time that the steps would have taken on links:
// their number by how long one took there.
std::string LearningLossesSvg(const CompressionResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_COMPRESSION_CHARTS_H_
