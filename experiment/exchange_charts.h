#ifndef TUG_EXPERIMENT_EXCHANGE_CHARTS_H_
#define TUG_EXPERIMENT_EXCHANGE_CHARTS_H_

// The pictures of the section EXCHANGE (exchange_section.h): an <svg> each, or "" where there is
// nothing to draw. Cases of a kind have the same colour in all of them. Pure, thread-safe.

#include <string>
#include <vector>

#include "experiment/exchange_points.h"

namespace tug {

// How long a step takes, and what the alpha-beta model says, a group under another.
std::string StepTimesSvg(const std::vector<ExchangePoint>& points);

// The alpha-beta model over sizes of models and over numbers of workers, and what was measured, on
// each link.
std::string AlphaBetaSvg(const std::vector<ExchangePoint>& points);

// What each host sent in a step, and the formula's busiest one, of the first group on a link.
std::string HostBytesSvg(const std::vector<ExchangePoint>& points);

// What the worker and the server that hold most hold, by kind.
std::string MemorySvg(const std::vector<ExchangePoint>& points);
// Names and colours of what is held, for a legend.
std::string MemoryLegend();

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_CHARTS_H_
