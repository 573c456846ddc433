// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_CHARTS_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_CHARTS_H_

// Pictures of the section EXCHANGE (exchange_section.h): an <svg> each, or "" if there is nothing
// to draw. Cases of a kind have the same colour in all of them. Pure, thread-safe.

#include <string>
#include <vector>

#include "lab/experiment/sections/exchange_points.h"

namespace tug {

// Step times, measured and by the alpha-beta model, one group below another.
std::string StepTimesSvg(const std::vector<ExchangePoint>& points);

// The alpha-beta model over model sizes and over numbers of workers, with measured values, for each
// link.
std::string AlphaBetaSvg(const std::vector<ExchangePoint>& points);

// Bytes that each host sent in a step, and the formula's busiest host, for the first group on a
// link.
std::string HostBytesSvg(const std::vector<ExchangePoint>& points);

// Memory of the worker and of the server that hold most, by kind.
std::string MemorySvg(const std::vector<ExchangePoint>& points);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_CHARTS_H_
