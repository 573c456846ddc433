#ifndef TUG_EXPERIMENT_EXCHANGE_CHARTS_H_
#define TUG_EXPERIMENT_EXCHANGE_CHARTS_H_

// The pictures of `tug experiment exchange` (exchange_report.h): an <svg> each, or "" where there
// is nothing to draw. Cases of a kind have the same colour in all of them. Pure, thread-safe.

#include <string>

#include "experiment/exchange_results.h"

namespace tug {

// How long a step takes, on each link with models of each size, and what the alpha-beta model says.
std::string StepTimesSvg(const ExchangeResults& results);
// The alpha-beta model over sizes of models and over numbers of workers, and what was measured, on
// each link that has a rate.
std::string AlphaBetaSvg(const ExchangeResults& results);
// What each host sent in a step, and the formula's busiest one, on the first link that has a rate.
std::string HostBytesSvg(const ExchangeResults& results);
// What the worker and the server that hold most hold, by kind.
std::string MemorySvg(const ExchangeResults& results);

// Names and colours of what is held, for a legend.
std::string MemoryLegend();

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_CHARTS_H_
