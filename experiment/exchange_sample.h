#ifndef TUG_EXPERIMENT_EXCHANGE_SAMPLE_H_
#define TUG_EXPERIMENT_EXCHANGE_SAMPLE_H_

#include "experiment/exchange_results.h"

namespace tug {

// All cases of 4 workers without a link and on 200mbit, with models of 4 and 16 MB: steps a tenth
// longer than the alpha-beta model says, links with 5% more bytes, memory as the lectures have it,
// equally in all nodes of a kind. zero2 failed on 200mbit with 16 MB. The text of settings wants to
// be escaped.
ExchangeResults SampleExchangeResults();

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_SAMPLE_H_
