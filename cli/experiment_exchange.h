#ifndef TUG_CLI_EXPERIMENT_EXCHANGE_H_
#define TUG_CLI_EXPERIMENT_EXCHANGE_H_

// `tug experiment exchange`: the same job with every way to make weights of gradients - parameter
// servers, BytePS's placement, all-reduce, ZeRO - on links of several rates.
//
//   1. Plan (exchange_plan.h): a job for each case, link and size of the model.
//   2. Run them one after the other; those of a link on a testbed with links of its rate, a job on
//      as many of its hosts as its case has.
//   3. After each job write what is known: report.html, exchange.json, exchange.md.
//
// A job that fails is a line of the report, and the others run all the same; the experiment then
// ends with an error. An interrupt ends the job that runs, and the experiment with it.

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/commands.h"
#include "cli/exchange_plan.h"

namespace tug {

absl::Status RunExchangeExperiment(const ExchangeArguments& arguments);

void AddExperimentExchange(CLI::App& experiment, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_EXCHANGE_H_
